// Orders with one stage on each rank, stage r on rank r; generators.cc says what each is.
#pragma once

#include "runtime/schedule/generators.h"

namespace plumbline {

Schedule gpipe(const ScheduleRequest& request);
Schedule one_f_one_b(const ScheduleRequest& request);
Schedule zb_h1(const ScheduleRequest& request);
Schedule zb_h2(const ScheduleRequest& request);

}  // namespace plumbline
