#include "conformance/report/chrome_trace.h"

#include <map>
#include <nlohmann/json.hpp>

namespace plumbline::conformance {
namespace {

using Json = nlohmann::ordered_json;

// Names from the palette of chrome://tracing; Perfetto ignores them and colours events by name.
const char* colour(schedule::ActionType type) {
  switch (type) {
    case schedule::ActionType::F:
      return "rail_response";
    case schedule::ActionType::B:
      return "thread_state_running";
    case schedule::ActionType::I:
      return "good";
    case schedule::ActionType::W:
      return "bad";
    default:
      return "grey";
  }
}

class Writer {
 public:
  explicit Writer(const ChromeTraceOptions& options) : options_(options) {}

  void add(const schedule::Trace& trace, int process) {
    event({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", trace.name}}}});
    for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
      const Json thread = {{"pid", process}, {"tid", rank}};
      Json name = {{"ph", "M"}, {"name", "thread_name"}, {"args", {{"name", "rank " + std::to_string(rank)}}}};
      name.update(thread);
      event(name);
      Json order = {{"ph", "M"}, {"name", "thread_sort_index"}, {"args", {{"sort_index", rank}}}};
      order.update(thread);
      event(order);
      const auto& actions = trace.ranks[rank];
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const schedule::Action& action = actions[i].action;
        Json arguments = {{"stage", action.stage}};
        if (schedule::has_microbatch(action.type)) arguments["microbatch"] = action.microbatch;
        arguments["kind"] = std::string(to_string(action.type));
        arguments["position"] = i;
        if (action.overlaps_next || (i > 0 && actions[i - 1].action.overlaps_next)) arguments["in_group"] = true;
        event({{"ph", "X"},
               {"name", to_string(action)},
               {"cat", schedule::is_compute(action.type) ? "compute" : "communication"},
               {"cname", colour(action.type)},
               {"pid", process},
               {"tid", rank},
               {"ts", actions[i].begin * options_.microseconds_per_unit},
               {"dur", (actions[i].end - actions[i].begin) * options_.microseconds_per_unit},
               {"args", arguments}});
      }
    }
  }

  void add_arrows(const schedule::Trace& trace) {
    std::map<std::string, const schedule::TimedAction*> found;
    for (const auto& actions : trace.ranks) {
      for (const schedule::TimedAction& timed : actions) found[to_string(timed.action)] = &timed;
    }
    const auto at = [&](const schedule::Action& action) {
      const auto place = found.find(to_string(action));
      return place == found.end() ? nullptr : place->second;
    };
    int number = 0;
    for (const schedule::Transfer& transfer : options_.transfers) {
      const schedule::Action& made = transfer.producer;
      const schedule::TimedAction* producer = at(made);
      const schedule::TimedAction* consumer = nullptr;
      for (schedule::ActionType type : {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I}) {
        if ((made.type == schedule::ActionType::F) != (type == schedule::ActionType::F) || consumer != nullptr)
          continue;
        consumer = at({transfer.to_stage, type, made.microbatch});
      }
      if (producer == nullptr || consumer == nullptr) continue;
      // The viewer ties an arrow to the event that contains its end point; the end of an event is not part of it.
      const double leaves = producer->begin + 0.999 * (producer->end - producer->begin);
      const Json flow = {{"cat", "transfer"}, {"name", to_string(made)}, {"id", number++}, {"pid", 0}};
      Json begin = {{"ph", "s"}, {"tid", transfer.from_rank}, {"ts", leaves * options_.microseconds_per_unit}};
      begin.update(flow);
      event(begin);
      Json end = {{"ph", "f"},
                  {"bp", "e"},
                  {"tid", transfer.to_rank},
                  {"ts", consumer->begin * options_.microseconds_per_unit}};
      end.update(flow);
      event(end);
    }
  }

  std::string finish() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n"; }

 private:
  void event(const Json& json) {
    if (!text_.empty()) text_ += ",\n";
    text_ += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const ChromeTraceOptions& options_;
  std::string text_;
};

}  // namespace

std::string chrome_trace(std::span<const schedule::Trace> traces, const ChromeTraceOptions& options) {
  Writer writer(options);
  for (std::size_t i = 0; i < traces.size(); ++i) writer.add(traces[i], static_cast<int>(i));
  if (!traces.empty()) writer.add_arrows(traces[0]);
  return writer.finish();
}

}  // namespace plumbline::conformance
