package hubadmin

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// pauses says what a pause or a resume has left half done. What it goes by is the item of the table that they keep.
func (x *examination) pauses(written *paused, all []Mapping) {
	const of = "pause (what is written down in the table, hub and paused)"
	over := written.pausing.Add(mostPausing)
	if !written.pausing.IsZero() {
		x.wrong(of, fmt.Sprintf("a pause that began at %s has not come to its end: it is at work, or has died", written.pausing.UTC().Format(time.RFC3339)),
			"some queues are served, and others not", fmt.Sprintf("%s, to have all of it paused; or, from %s on, %s", x.verb("pause"), over.UTC().Format(time.RFC3339), x.resume()))
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
		x.wrong(of, fmt.Sprintf("enabled, though written down as paused: %s (a pause or a resume has died, or a deployment has enabled them); still paused: %s", strings.Join(on, ", "), listed(off)),
			"some queues are served, and others not", fmt.Sprintf("%s, to have all of it paused, or %s", x.verb("pause"), x.resume()))
	}

	var gone []string
	for uuid := range written.uuids {
		if !there[uuid] {
			gone = append(gone, uuid)
		}
	}
	slices.Sort(gone)
	if len(gone) > 0 {
		x.wrong(of, "written down as paused, and not there any more: "+strings.Join(gone, ", "), "what a deployment has put in their place may be disabled, and no resume knows it",
			fmt.Sprintf("look below at what is disabled; %s, and then %s --all, if all of it is to be enabled", x.resume(), x.resume()))
	}
}

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// resume is what to type.
func (x *examination) resume() string { return x.verb("resume") }

func (x *examination) verb(name string) string { return "perdure " + name + " --hub " + x.Where.Name }
