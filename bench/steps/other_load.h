// The processor time that other processes of this machine take while something is measured.
#pragma once

namespace plumbline::bench {

/// Counts from its construction, by /proc/stat and getrusage().
class OtherLoad {
 public:
  OtherLoad();
  /// The part of all cores' time, 0 to 1, that other processes took: neither this one with its ended children nor
  /// idle. 0 where the machine does not say.
  double share() const;

 private:
  struct Times {
    double all = 0, idle = 0, own = 0;  ///< seconds, of all cores together
  };
  static Times now();
  Times begin_;
};

}  // namespace plumbline::bench
