package providertest

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// Schedules are listed, so that they can be found among all instances.
func schedules() group {
	return group{"schedules", []testCase{
		{name: "WhatIsNotedIsListed", run: schedulesNoted},
		{name: "WhatIsNotedAgainIsNotForgotten", run: scheduleNotedAgain},
	}}
}

// noted returns the list of schedules.
func (f *fixture) noted() (all []provider.ScheduleEntry) {
	for s, err := range f.p.ListSchedules(f.ctx(), "") {
		f.must(err)
		all = append(all, s)
	}
	return all
}

func schedulesNoted(f *fixture) {
	f.wantEqual("stored at first", len(f.noted()), 0)
	at := f.now().Truncate(time.Millisecond)
	const many = 30
	for i := range many {
		f.must(f.p.PutScheduleEntry(f.ctx(), provider.ScheduleEntry{ID: fmt.Sprintf("%02d <é#/%%>", many-1-i), NotedAt: at}))
	}
	all := f.noted()
	f.wantEqual("noted", len(all), many)
	for i, s := range all {
		f.wantEqual("in order", s, provider.ScheduleEntry{ID: fmt.Sprintf("%02d <é#/%%>", i), NotedAt: at})
	}
	for after, want := range map[string]string{"": all[0].ID, all[17].ID: all[18].ID, all[many-1].ID: "none"} {
		first := "none"
		for s, err := range f.p.ListSchedules(f.ctx(), after) {
			f.must(err)
			first = s.ID
			break
		}
		f.wantEqual("the first after "+after, first, want)
	}
}

func scheduleNotedAgain(f *fixture) {
	first := provider.ScheduleEntry{ID: "nightly", NotedAt: f.now().Truncate(time.Millisecond)}
	again := provider.ScheduleEntry{ID: first.ID, NotedAt: first.NotedAt.Add(time.Millisecond)}
	f.must(f.p.DeleteScheduleEntry(f.ctx(), first)) // the list does not contain it
	f.must(f.p.PutScheduleEntry(f.ctx(), first))
	f.must(f.p.PutScheduleEntry(f.ctx(), again))
	f.must(f.p.DeleteScheduleEntry(f.ctx(), first))
	f.wantEqual("stored again", f.noted(), []provider.ScheduleEntry{again})
	f.must(f.p.DeleteScheduleEntry(f.ctx(), again))
	f.must(f.p.DeleteScheduleEntry(f.ctx(), again)) // a call whose response was lost
	f.wantEqual("forgotten", len(f.noted()), 0)
}
