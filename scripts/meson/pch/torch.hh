// Parsed once for libplumbline: headers that nearly every file of it includes, and the tensor functions, which a third
// of them include. Files still include what they use; a build with -Db_pch=false verifies it.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
