package cdk

import (
	"encoding/json"
	"fmt"
)

// Schedule starts an orchestration by the clock. The hub's renewer makes it, and changes it when its declaration has changed; one that is
// taken out of the stack goes on until it is deleted. When it is due is checked by the renewer, whose alarm says what is wrong.
type Schedule struct {
	// ID names the schedule. ID, Orchestration and When are required.
	ID            string `json:"id"`
	Orchestration string `json:"orchestration"`
	Version       string `json:"version,omitempty"`
	// Input is that of each run: a JSON document.
	Input json.RawMessage `json:"input,omitempty"`
	// When is rate(5 minutes), cron(0 2 * * ? *) as EventBridge Scheduler has it, five fields as crontab has them, or @daily.
	When string `json:"when"`
	// TimeZone is that of a cron expression, such as Europe/Berlin. Default: UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Overlap is what becomes of a time that comes while a run is under way: skip (the default), queue, cancel or allow.
	Overlap string `json:"overlap,omitempty"`
	// CatchUp is what becomes of times that were missed: last (the default), none or all.
	CatchUp string `json:"catchUp,omitempty"`
}

// maxSchedulesBytes leaves room for the other variables of the renewer: AWS Lambda ends a function's at 4 KB.
const maxSchedulesBytes = 2048

// schedulesEnvironment is what the renewer is told of them.
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

// validateSchedules refuses what the renewer would refuse much later.
func (p TaskHubProps) validateSchedules() error {
	seen := map[string]bool{}
	for i, s := range p.Schedules {
		switch {
		case s.ID == "" || s.Orchestration == "" || s.When == "":
			return fmt.Errorf("schedule %d (%q): ID, Orchestration and When are required", i, s.ID)
		case seen[s.ID]:
			return fmt.Errorf("schedule %q is declared twice", s.ID)
		case len(s.Input) > 0 && !json.Valid(s.Input):
			return fmt.Errorf("schedule %q: Input is no JSON document", s.ID)
		}
		seen[s.ID] = true
	}
	doc, err := json.Marshal(p.Schedules)
	if err == nil && len(doc) > maxSchedulesBytes {
		err = fmt.Errorf("they take %d bytes of the renewer's environment, %d are there: put those with large inputs by the API", len(doc), maxSchedulesBytes)
	}
	return err
}
