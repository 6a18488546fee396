package cdk

import (
	"encoding/json"
	"fmt"
)

// Schedule declares a schedule that starts an orchestration at fixed times. The renewer creates the schedule, and
// updates it when the declaration changes. A schedule that you remove from the stack continues until you delete it.
// Synthesis does not validate Expression. If it is invalid, the renewer reports an error, which an alarm detects.
type Schedule struct {
	// ID is the ID of the schedule. It is required.
	ID string `json:"id"`
	// Orchestration is the name of the orchestration. It is required.
	Orchestration string `json:"orchestration"`
	// Version is the version of the orchestration. Default: the highest version when a run starts.
	Version string `json:"version,omitempty"`
	// Input is the input of each run, a JSON document. Default: no input.
	Input json.RawMessage `json:"input,omitempty"`
	// Expression is a schedule expression: rate(5 minutes), cron(0 2 * * ? *) in the format of EventBridge Scheduler,
	// five crontab fields, or a macro such as @daily. It is required.
	Expression string `json:"when"`
	// TimeZone is the time zone of a cron expression, such as Europe/Berlin. Default: UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Overlap is the policy for a time at which the previous run has not ended: skip, queue, cancel or allow. Default:
	// skip.
	Overlap string `json:"overlap,omitempty"`
	// CatchUp is the policy for missed times: last, none or all. Default: last.
	CatchUp string `json:"catchUp,omitempty"`
}

// maxSchedulesBytes limits Schedules, because Lambda limits all variables of a function to 4 KB.
const maxSchedulesBytes = 2048

// schedulesEnvironment returns the variables of the renewer for Schedules.
func (h environments) schedulesEnvironment() environment {
	if len(h.props.Schedules) == 0 {
		return nil
	}
	doc, err := json.Marshal(h.props.Schedules)
	if err != nil {
		panic(fmt.Errorf("task hub %s: Schedules: %w", h.props.HubName, err))
	}
	return environment{"PERDURE_SCHEDULES": string(doc)}
}

// validateSchedules returns an error for schedules that the renewer would reject.
func (p TaskHubProps) validateSchedules() error {
	seen := map[string]bool{}
	for i, s := range p.Schedules {
		switch {
		case s.ID == "" || s.Orchestration == "" || s.Expression == "":
			return fmt.Errorf("schedule %d (%q): ID, Orchestration and Expression are required", i, s.ID)
		case seen[s.ID]:
			return fmt.Errorf("duplicate schedule %q", s.ID)
		case len(s.Input) > 0 && !json.Valid(s.Input):
			return fmt.Errorf("schedule %q: Input is not valid JSON", s.ID)
		}
		seen[s.ID] = true
	}
	doc, err := json.Marshal(p.Schedules)
	if err == nil && len(doc) > maxSchedulesBytes {
		err = fmt.Errorf("size is %d bytes, the limit is %d: create schedules with large inputs through the API",
			len(doc), maxSchedulesBytes)
	}
	return err
}
