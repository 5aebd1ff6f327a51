// The processor time that this machine spends on other work while a process measures something.
#pragma once

namespace plumbline::bench {

/// Measures from its construction on, by /proc/stat and getrusage().
class OtherLoad {
 public:
  OtherLoad();
  /// Returns the fraction (0 to 1) of all cores' time since the construction that went to other work: other processes,
  /// children of this process that still run, interrupts, and time that a hypervisor took ("steal"). It excludes idle
  /// time, waiting for disks included, and the time of this process and of its children that ended and were waited for.
  /// Returns 0 if /proc/stat cannot be read, or has not advanced yet.
  double share() const;

 private:
  struct Times {
    double all = 0, idle = 0, own = 0;  ///< seconds, of all cores together
  };
  static Times now();
  Times begin_;
};

}  // namespace plumbline::bench
