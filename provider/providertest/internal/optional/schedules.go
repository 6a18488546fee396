package optional

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Schedules tests the list of schedules.
func Schedules() kit.Group {
	return kit.Group{Name: "schedules", Optional: provider.CapabilitySchedules, Cases: []kit.Case{
		{Name: "WhatIsNotedIsListed", Run: schedulesNoted},
		{Name: "WhatIsNotedAgainIsNotForgotten", Run: scheduleNotedAgain},
	}}
}

// noted returns the list of schedules.
func noted(f *kit.Fixture) (all []provider.ScheduleEntry) {
	for s, err := range f.Provider.ListSchedules(f.Ctx(), "") {
		f.Must(err)
		all = append(all, s)
	}
	return all
}

func schedulesNoted(f *kit.Fixture) {
	f.WantEqual("stored at first", len(noted(f)), 0)
	at := f.StoredNow().Truncate(time.Millisecond)
	const many = 30
	for i := range many {
		f.Must(f.Provider.PutScheduleEntry(f.Ctx(), provider.ScheduleEntry{
			ID: fmt.Sprintf("%02d <é#/%%>", many-1-i), NotedAt: at,
		}))
	}
	all := noted(f)
	f.WantEqual("noted", len(all), many)
	for i, s := range all {
		f.WantEqual("listed schedule", s, provider.ScheduleEntry{ID: fmt.Sprintf("%02d <é#/%%>", i), NotedAt: at})
	}
	for after, want := range map[string]string{"": all[0].ID, all[17].ID: all[18].ID, all[many-1].ID: "none"} {
		first := "none"
		for s, err := range f.Provider.ListSchedules(f.Ctx(), after) {
			f.Must(err)
			first = s.ID
			break
		}
		f.WantEqual("first schedule after "+after, first, want)
	}
}

func scheduleNotedAgain(f *kit.Fixture) {
	first := provider.ScheduleEntry{ID: "nightly", NotedAt: f.StoredNow().Truncate(time.Millisecond)}
	again := provider.ScheduleEntry{ID: first.ID, NotedAt: first.NotedAt.Add(time.Millisecond)}
	f.Must(f.Provider.DeleteScheduleEntry(f.Ctx(), first)) // the list does not contain it
	f.Must(f.Provider.PutScheduleEntry(f.Ctx(), first))
	f.Must(f.Provider.PutScheduleEntry(f.Ctx(), again))
	f.Must(f.Provider.DeleteScheduleEntry(f.Ctx(), first))
	f.WantEqual("stored again", noted(f), []provider.ScheduleEntry{again})
	f.Must(f.Provider.DeleteScheduleEntry(f.Ctx(), again))
	f.Must(f.Provider.DeleteScheduleEntry(f.Ctx(), again)) // a call whose response was lost
	f.WantEqual("forgotten", len(noted(f)), 0)
}
