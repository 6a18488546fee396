package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/scan"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// changeCount is the number of instances that have not ended, by the version of a change.
type changeCount struct {
	Orchestration string `json:"orchestration"`
	// OrchestrationVersion is empty for instances that have no version yet.
	OrchestrationVersion string `json:"orchestrationVersion"`
	Change               string `json:"change"`
	// Version is empty for instances that have not reached the change, or passed it before it existed.
	Version   string    `json:"version"`
	Instances int       `json:"instances"`
	Oldest    time.Time `json:"oldestCreatedAt"`
}

// unchangedCount is the number of instances of a version without changes in their histories.
type unchangedCount struct {
	Orchestration        string    `json:"orchestration"`
	OrchestrationVersion string    `json:"orchestrationVersion"`
	Instances            int       `json:"instances"`
	Oldest               time.Time `json:"oldestCreatedAt"`
}

// changeCounts is the --json output of versions --changes.
type changeCounts struct {
	Changes []changeCount `json:"changes"`
	// WithoutChanges are the versions without changes in any history.
	WithoutChanges []unchangedCount `json:"withoutChanges"`
	// Read is the number of histories that were read. Unread are the IDs of instances with unreadable histories.
	Read     int      `json:"read"`
	Unread   []string `json:"unread,omitempty"`
	Complete bool     `json:"complete"` // false if there are more instances than --max-instances
}

// showChanges prints the versions of changes in the histories of current executions.
func showChanges(ctx context.Context, env *cli.Env, cl *client.Client, name string, maxInstances int) error {
	counter := changeCounter{client: cl, max: maxInstances}
	if err := counter.countAll(ctx, env, name); err != nil {
		return err
	}
	found := counter.result()
	if err := printChanges(env, &found); err != nil {
		return err
	}
	return found.exit()
}

func printChanges(env *cli.Env, found *changeCounts) error {
	t := term.Table{Header: []string{
		term.ColumnOrchestration, term.ColumnVersion, "CHANGE", "CHANGE VERSION", ">INSTANCES", "OLDEST STARTED",
	}}
	rows := slices.Clone(found.Changes)
	for _, n := range found.WithoutChanges {
		rows = append(rows, changeCount{
			Orchestration: n.Orchestration, OrchestrationVersion: n.OrchestrationVersion,
			Instances: n.Instances, Oldest: n.Oldest,
		})
	}
	slices.SortFunc(rows, byVersion)
	for _, n := range rows {
		t.Add(term.Excerpt(n.Orchestration, term.MaxName),
			term.Excerpt(term.OrDash(n.OrchestrationVersion), term.MaxName),
			term.Excerpt(term.OrDash(n.Change), term.MaxName), cmp.Or(n.Version, "none"), strconv.Itoa(n.Instances),
			term.Time(n.Oldest))
	}
	return env.PrintResult(found, t.String())
}

// exit returns an error if some histories were not read, because their instances may need old code.
func (n *changeCounts) exit() error {
	var lacks []string
	if !n.Complete {
		lacks = append(lacks,
			fmt.Sprintf("%d histories read, but more instances are running; increase --max-instances", n.Read))
	}
	if len(n.Unread) > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of %d histories cannot be read and are not counted: %s",
			len(n.Unread), n.Read+len(n.Unread), term.SomeOf(n.Unread, len(n.Unread))))
	}
	if len(lacks) == 0 {
		return nil
	}
	return &cli.ExitError{Code: cli.CodeError, Text: strings.Join(lacks, "; ")}
}

// changeCounter reads the histories of instances and counts the versions of changes in them.
type changeCounter struct {
	client *client.Client
	max    int // the number of instances to read
	seen   []instanceChanges
	unread []string // the IDs of instances with unreadable histories
	more   bool     // whether there are more instances than max
	shown  *cli.Progress
}

// instanceChanges are the versions of changes in the history of an instance.
type instanceChanges struct {
	of        scan.Version
	createdAt time.Time
	versions  map[string]string // by change; nil if there are none
}

// countAll reads the instances that have not ended.
func (n *changeCounter) countAll(ctx context.Context, env *cli.Env, name string) error {
	n.shown = env.StartProgress()
	defer n.shown.Stop()
	n.shown.Set(n.reached())
	for p := (client.Paging{Limit: 100}); ; {
		page, err := n.client.ListPage(ctx, client.ListQuery{Orchestration: name}, p)
		if err != nil {
			return err
		}
		if err := n.countPage(ctx, page.Items); err != nil {
			return err
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" || n.more {
			return nil
		}
	}
}

// countPage reads the instances of a page that have not ended, until max instances were read.
func (n *changeCounter) countPage(ctx context.Context, page []client.Status) error {
	for i := range page {
		s := &page[i]
		if s.Status.Terminal() || s.Status == client.StatusDeleting {
			continue
		}
		if len(n.seen)+len(n.unread) >= n.max {
			n.more = true
			return nil
		}
		if err := n.count(ctx, s); err != nil {
			return err
		}
		n.shown.Set(n.reached())
	}
	return nil
}

func (n *changeCounter) reached() string {
	return fmt.Sprintf("%d histories read, %d unreadable", len(n.seen), len(n.unread))
}

// count reads the history of the current execution of an instance.
func (n *changeCounter) count(ctx context.Context, s *client.Status) error {
	seen := instanceChanges{
		of: scan.Version{Orchestration: s.Orchestration, Version: s.Version}, createdAt: s.CreatedAt,
	}
	for e, err := range n.client.History(ctx, s.InstanceID) {
		switch {
		case errors.Is(err, client.ErrNotFound):
			return nil // the instance was purged since it was listed
		case errors.Is(err, provider.ErrCorrupt):
			n.unread = append(n.unread, s.InstanceID)
			return nil
		case err != nil:
			return err
		case e.Kind == history.TurnStarted && e.Version != "":
			seen.of.Version = e.Version // this execution may be newer than the listed one
		case e.Kind == history.VersionMarked:
			if seen.versions == nil {
				seen.versions = map[string]string{}
			}
			seen.versions[e.ChangeID] = e.Version
		}
	}
	n.seen = append(n.seen, seen)
	return nil
}

// result counts all instances of a version for each change in one of their histories.
func (n *changeCounter) result() changeCounts {
	known := map[scan.Version]map[string]bool{} // changes, by version
	for _, s := range n.seen {
		if known[s.of] == nil {
			known[s.of] = map[string]bool{}
		}
		for change := range s.versions {
			known[s.of][change] = true
		}
	}

	counts := map[changeCount]changeCount{}
	for _, s := range n.seen {
		changes := known[s.of]
		if len(changes) == 0 {
			changes = map[string]bool{"": true}
		}
		for change := range changes {
			key := changeCount{
				Orchestration: s.of.Orchestration, OrchestrationVersion: s.of.Version,
				Change: change, Version: s.versions[change],
			}
			n, ok := counts[key]
			if !ok {
				n = key
			}
			if n.Instances++; n.Oldest.IsZero() || s.createdAt.Before(n.Oldest) {
				n.Oldest = s.createdAt
			}
			counts[key] = n
		}
	}
	all := slices.AppendSeq([]changeCount{}, maps.Values(counts))
	slices.SortFunc(all, byVersion)
	return n.separate(all)
}

func byVersion(a, b changeCount) int {
	return cmp.Or(
		cmp.Compare(a.Orchestration, b.Orchestration),
		cmp.Compare(a.OrchestrationVersion, b.OrchestrationVersion),
		cmp.Compare(a.Change, b.Change),
		cmp.Compare(len(a.Version), len(b.Version)), // 9 before 10
		cmp.Compare(a.Version, b.Version),
	)
}

// separate moves the versions without changes to a separate list.
func (n *changeCounter) separate(all []changeCount) changeCounts {
	found := changeCounts{
		Changes: []changeCount{}, WithoutChanges: []unchangedCount{},
		Read: len(n.seen), Unread: n.unread, Complete: !n.more,
	}
	for _, of := range all {
		if of.Change == "" {
			found.WithoutChanges = append(found.WithoutChanges,
				unchangedCount{of.Orchestration, of.OrchestrationVersion, of.Instances, of.Oldest})
		} else {
			found.Changes = append(found.Changes, of)
		}
	}
	return found
}
