// Parsed once for libplumbline: what nearly every file of it includes anyway, and the functions on tensors, which a
// third of them include. Files still include what they use; a build with -Db_pch=false proves it.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
