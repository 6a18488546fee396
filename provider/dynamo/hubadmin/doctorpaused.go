package hubadmin

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// pauses reports an incomplete pause or resume, according to the pause record in the hub's table.
func (x *examination) pauses(written *paused, all []Mapping) {
	const of = `pause record (table item pk "hub", sk "paused")`
	if !written.pausing.IsZero() {
		start := written.pausing.UTC().Format(time.RFC3339)
		over := written.pausing.Add(mostPausing).UTC().Format(time.RFC3339)
		x.report(of,
			fmt.Sprintf("a pause that started at %s did not complete: it is still running or was interrupted", start),
			partlyPaused, fmt.Sprintf("%s to complete the pause, or %s after %s", x.verb("pause"), x.resume(), over))
	}

	there := map[string]bool{}
	var off, on []string
	for i := range all {
		m := &all[i]
		there[m.UUID] = true
		switch {
		case m.State == stateEnabled && written.uuids[m.UUID]:
			on = append(on, m.UUID)
		case written.uuids[m.UUID]:
			off = append(off, m.UUID)
		}
	}
	if len(on) > 0 {
		x.report(of,
			fmt.Sprintf("mappings that perdure pause disabled are enabled: %s. A pause or resume was interrupted, "+
				"or a deployment enabled them. Still disabled: %s", strings.Join(on, ", "), listed(off)),
			partlyPaused, fmt.Sprintf("%s to complete the pause, or %s", x.verb("pause"), x.resume()))
	}

	var gone []string
	for uuid := range written.uuids {
		if !there[uuid] {
			gone = append(gone, uuid)
		}
	}
	slices.Sort(gone)
	if len(gone) > 0 {
		x.report(of, "mappings that perdure pause disabled no longer exist: "+strings.Join(gone, ", "),
			"mappings that replaced them may be disabled, and perdure resume does not enable them",
			fmt.Sprintf("check the disabled mappings below, then run %s --all to enable all mappings", x.resume()))
	}
}

// partlyPaused is the impact of an incomplete pause or resume.
const partlyPaused = "some queues are processed and others are not"

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// resume returns the command that resumes the hub.
func (x *examination) resume() string { return x.verb("resume") }

func (x *examination) verb(name string) string { return "perdure " + name + " --hub " + x.Config.Name }
