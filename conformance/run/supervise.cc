#include "conformance/run/supervise.h"

#include <optional>
#include <vector>

#include "conformance/backend/flight/told_waits.h"
#include "conformance/protocol/command/job_failure.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/recording/judge_recording.h"
#include "runtime/io/regular_file.h"
#include "runtime/text/counted.h"

namespace plumbline::conformance {
namespace {

class Supervisor {
 public:
  Supervisor(const Backend& backend, const Job& job, const std::filesystem::path& out, JobObserver& observer,
             Delivery delivery)
      : backend_(backend), job_(job), out_(out), observer_(observer), delivery_(delivery), settled_(job.cases.size()) {}

  /// False when the backend does not answer.
  bool plan() {
    if (job_.cases.empty()) return true;
    try {
      const std::vector<std::optional<PlanAnswer>> answers = backend_.plan(job_, out_);
      for (size_t i = 0; i < answers.size(); ++i) {
        const std::optional<PlanAnswer>& answer = answers[i];
        if (!answer)
          settle(i, Status::Error, "plan gave no answer for it");
        else if (!answer->supported)
          settle(i, Status::Unsupported, answer->why);
      }
    } catch (const BackendError& error) {
      observer_.not_started(with_log(error.what()));
      return false;
    }
    return true;
  }

  /// Starts the backend with the cases that are left; false when it cannot run more of them.
  bool launch() {
    for (const size_t i : open())
      if (const std::string left = remove_results(out_, job_.cases[i]); !left.empty()) settle(i, Status::Error, left);
    const std::vector<size_t> cases = open();
    if (cases.empty()) return false;
    Job rest = job_;
    rest.cases.clear();
    for (const size_t i : cases) rest.cases.push_back(job_.cases[i]);
    std::optional<size_t> running;
    size_t last = cases.front();
    for (int rank = 0; rank < job_.ranks; ++rank) {
      std::error_code none;
      std::filesystem::remove(flight_log(out_, rank), none);
    }
    const JobResult result = backend_.run(rest, out_, [&](const JobEvent& event) {
      const size_t index = cases[event.index];
      running = event.done ? std::nullopt : std::optional<size_t>(index);
      last = index;
      if (!event.done)
        observer_.begins(index);
      else if (!event.failed.empty())
        settle(index, Status::Error, event.failed);
      else
        done(index);
    });
    // Where a rank ends at once, its launcher may end without the events of rank 0.
    if (!result.any_event && !result.succeeded && !read_flights(out_, job_.ranks).empty()) {
      running = last;
      observer_.begins(last);
    }
    started_ = started_ || result.any_event || running;
    const std::string hidden = clause_on_hidden_event(result);
    std::string reason = reason_of(result) + hidden;
    if (result.timed_out)
      reason += told_waits(read_flights(out_, job_.ranks), /*killed=*/true, out_, flight_page(out_, job_.cases[last]));
    if (running)
      settle(*running, result.timed_out ? Status::Timeout : Status::Error,
             result.succeeded ? "ended in the middle of it, with exit code 0" + hidden : reason);
    if (result.repeated_event) {  // another start would have it as well
      observer_.broken(with_log(ranks() + "failed: " + reason));
      return false;
    }
    if (running) return true;
    if (result.succeeded) {
      for (const size_t i : open()) settle(i, Status::Error, "ended with exit code 0 without running it" + hidden);
    } else if (!started_) {
      observer_.not_started(with_log(backend_.name() + ": run: " + reason));
      return false;
    } else {
      observer_.broken(
          with_log(ranks() + (result.any_event ? "failed between two cases: " : "did not start again: ") + reason));
      return result.any_event;
    }
    return true;
  }

 private:
  std::string ranks() const { return backend_.name() + " on " + counted(job_.ranks, "rank") + " "; }

  /// A failure outside of the cases, and where the backend's words about it are.
  std::string with_log(const std::string& reason) const {
    const std::filesystem::path log = backend_log(out_);
    std::error_code none;
    return std::filesystem::exists(log, none) ? reason + " (see " + log.string() + ")" : reason;
  }

  /// The cases without a verdict.
  std::vector<size_t> open() const {
    std::vector<size_t> left;
    for (size_t i = 0; i < settled_.size(); ++i)
      if (!settled_[i]) left.push_back(i);
    return left;
  }

  void settle(size_t index, Status status, const std::string& reason) {
    settled_[index] = true;
    observer_.failed(index, status, reason);
  }

  /// Why a case cannot be judged: a file that it lacks, a link in place of its folder. Empty if it can.
  std::string why_not_judged(const JobCase& c) const {
    std::filesystem::path file = result_path("", c, 0);
    if (const std::string wrong = why_no_folder(out_, file.parent_path()); !wrong.empty()) return wrong;
    if (delivery_ == Delivery::Results ? !result_files(out_, c).empty() : is_recording(recording_folder(out_, c)))
      return "";
    if (delivery_ == Delivery::Recording) file.replace_extension("json");
    return "said to be done, but there is no file " + file.string() +
           (delivery_ == Delivery::Results ? " nor of another rank" : "");
  }

  void done(size_t index) {
    const std::string why = why_not_judged(job_.cases[index]);
    if (!why.empty()) return settle(index, Status::Error, why);
    settled_[index] = true;
    observer_.done(index);
  }

  const Backend& backend_;
  const Job& job_;
  const std::filesystem::path& out_;
  JobObserver& observer_;
  Delivery delivery_;
  std::vector<bool> settled_;
  bool started_ = false;
};

}  // namespace

void supervise(const Backend& backend, const Job& job, const std::filesystem::path& out, JobObserver& observer,
               Delivery delivery) {
  Supervisor supervisor(backend, job, out, observer, delivery);
  if (!supervisor.plan()) return;
  while (supervisor.launch()) {
  }
}

}  // namespace plumbline::conformance
