package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// changeCount is how many instances that are not over go by a version of a change.
type changeCount struct {
	Orchestration string `json:"orchestration"`
	Change        string `json:"change"`
	// Version is empty for instances that have none: they have not come to the change, or had passed it before it was there.
	Version   string    `json:"version"`
	Instances int       `json:"instances"`
	Oldest    time.Time `json:"oldestCreatedAt"`
}

// changeCounts is what versions --changes prints with --json.
type changeCounts struct {
	Changes []changeCount `json:"changes"`
	// Read are the instances whose histories were read, Unread those whose histories cannot be.
	Read     int      `json:"read"`
	Unread   []string `json:"unread,omitempty"`
	Complete bool     `json:"complete"` // false: there are more than were to be read
}

// changes prints which versions of changes the current executions of instances go by.
func changes(ctx context.Context, c *command, cl *client.Client, name string, most int) error {
	counter := changeCounter{client: cl, most: most}
	if err := counter.countAll(ctx, c, name); err != nil {
		return err
	}
	found := counter.result()
	if c.json {
		return c.printJSON(found)
	}

	t := table{header: []string{columnOrchestration, "CHANGE", columnVersion, ">INSTANCES", "OLDEST STARTED"}}
	for _, n := range found.Changes {
		t.add(excerpt(n.Orchestration, longestName), excerpt(n.Change, longestName), cmp.Or(n.Version, "none"), strconv.Itoa(n.Instances), moment(n.Oldest))
	}
	if err := c.print(t.String()); err != nil {
		return err
	}
	if len(found.Unread) > 0 {
		fmt.Fprintf(c.err, "perdure: the histories of %d instances cannot be read, such as that of %s\n", len(found.Unread), clean(found.Unread[0]))
	}
	if !found.Complete {
		return &exit{exitError, fmt.Sprintf("%d histories were read, and there are more instances that are not over: --most reads more", found.Read)}
	}
	return nil
}

// changeCounter reads histories.
type changeCounter struct {
	client *client.Client
	most   int
	seen   []changesSeen
	unread []string
	more   bool
}

// changesSeen are the versions that an instance goes by, by change.
type changesSeen struct {
	orchestration string
	began         time.Time
	versions      map[string]string
}

// countAll reads the instances that are not over.
func (n *changeCounter) countAll(ctx context.Context, c *command, name string) error {
	told := time.Now()
	for p := (client.Paging{Limit: 100}); ; {
		page, err := n.client.ListPage(ctx, client.Query{Name: name}, p)
		if err != nil {
			return err
		}
		if err := n.countPage(ctx, page.Items); err != nil {
			return err
		}
		if c.attended && time.Since(told) >= progressEvery {
			told = time.Now()
			fmt.Fprintf(c.err, "perdure: %d histories read\n", len(n.seen))
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" || n.more {
			return nil
		}
	}
}

// countPage reads the instances of a page that are not over, until there were as many as are to be read.
func (n *changeCounter) countPage(ctx context.Context, page []client.Status) error {
	for i := range page {
		s := &page[i]
		if s.Status.Terminal() || s.Status == client.StatusDeleting {
			continue
		}
		if len(n.seen)+len(n.unread) >= n.most {
			n.more = true
			return nil
		}
		if err := n.count(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// count reads the history of an instance's current execution.
func (n *changeCounter) count(ctx context.Context, s *client.Status) error {
	seen := changesSeen{orchestration: s.Orchestration, began: s.CreatedAt, versions: map[string]string{}}
	for e, err := range n.client.History(ctx, s.InstanceID) {
		switch {
		case errors.Is(err, client.ErrNotFound):
			return nil // it was purged meanwhile
		case errors.Is(err, provider.ErrCorrupt):
			n.unread = append(n.unread, s.InstanceID)
			return nil
		case err != nil:
			return err
		case e.Kind == history.VersionMarked:
			seen.versions[e.Change] = e.Version
		}
	}
	n.seen = append(n.seen, seen)
	return nil
}

// result counts, for each change that an instance of an orchestration goes by, all instances of that.
func (n *changeCounter) result() changeCounts {
	known := map[string]map[string]bool{} // changes, by orchestration
	for _, s := range n.seen {
		if known[s.orchestration] == nil {
			known[s.orchestration] = map[string]bool{}
		}
		for change := range s.versions {
			known[s.orchestration][change] = true
		}
	}

	counts := map[changeCount]changeCount{}
	for _, s := range n.seen {
		for change := range known[s.orchestration] {
			key := changeCount{Orchestration: s.orchestration, Change: change, Version: s.versions[change]}
			of, there := counts[key]
			if !there {
				of = key
			}
			if of.Instances++; of.Oldest.IsZero() || s.began.Before(of.Oldest) {
				of.Oldest = s.began
			}
			counts[key] = of
		}
	}
	all := slices.AppendSeq([]changeCount{}, maps.Values(counts))
	slices.SortFunc(all, func(a, b changeCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Change, b.Change), cmp.Compare(len(a.Version), len(b.Version)), cmp.Compare(a.Version, b.Version))
	})
	return changeCounts{Changes: all, Read: len(n.seen), Unread: n.unread, Complete: !n.more}
}
