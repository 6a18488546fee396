package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

// backend is a hub in memory with dead letters.
type backend struct {
	*fakeprovider.Provider
	*fakeprovider.Letters
}

// fixture is a server on a hub in memory. Tests move its clock between two calls.
type fixture struct {
	*fakeprovider.Provider

	letters *fakeprovider.Letters
	t       *testing.T
	now     time.Time
	env     *cli.Env
	hub     cli.Hub
	session *mcp.ClientSession
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, now: began}
	clock := func() time.Time { return f.now }
	f.Provider = fakeprovider.New(clock, "fulfil", "ship")
	f.letters = fakeprovider.NewLetters(clock, "default", provider.QueueInbox)
	f.env = &cli.Env{HubName: "shop", Now: clock, Getenv: func(string) string { return "" }}
	p := backend{f.Provider, f.letters}
	f.hub = cli.Hub{Client: client.New(p, client.WithClock(clock)), Admin: admin.New(p, admin.WithClock(clock))}
	return f
}

// connect connects a client to a server that allows these commands.
func (f *fixture) connect(allow ...string) *fixture {
	f.t.Helper()
	allowed, err := Allowed(allow)
	if err != nil {
		f.t.Fatal(err)
	}
	f.connectTo(newServer(f.t.Context(), f.env, f.hub, allowed))
	return f
}

func (f *fixture) connectTo(s *server) {
	f.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.mcp.Connect(f.t.Context(), there, nil); err != nil {
		f.t.Fatal(err)
	}
	f.session = clientSession(f.t, here)
}

func clientSession(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

type arguments = map[string]any

// reply is a result as a client sees it.
type reply struct {
	Summary   string    `json:"summary"`
	Notice    string    `json:"notice"`
	Hub       string    `json:"hub"`
	Preview   *preview  `json:"preview"`
	Runbooks  []section `json:"runbooks"`
	Untrusted struct {
		Text string         `json:"text"`
		Data map[string]any `json:"data"`
	} `json:"untrusted"`
	Error string `json:"error"`

	// text is the text of the content, and size the size of the structured content.
	text string
	size int
}

// send calls a tool.
func (f *fixture) send(tool string, args any) (r reply, failed bool) {
	f.t.Helper()
	result, err := f.session.CallTool(f.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		f.t.Fatalf("%s: %v", tool, err)
	}
	doc, err := json.Marshal(result.StructuredContent)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &r); err != nil {
		f.t.Fatalf("%s: %v: %s", tool, err, doc)
	}
	for _, c := range result.Content {
		r.text += c.(*mcp.TextContent).Text
	}
	r.size = len(doc)
	return r, result.IsError
}

// call calls a tool, which must succeed.
func (f *fixture) call(tool string, args any) reply {
	f.t.Helper()
	r, failed := f.send(tool, args)
	if failed {
		f.t.Fatalf("%s: %s", tool, r.text)
	}
	if r.Hub != "shop" || r.Summary == "" {
		f.t.Errorf("%s: hub %q, summary %q", tool, r.Hub, r.Summary)
	}
	return r
}

// wantError calls a tool, which must fail with a text that has all words.
func (f *fixture) wantError(tool string, args any, words ...string) {
	f.t.Helper()
	r, failed := f.send(tool, args)
	for _, word := range words {
		if !failed || !strings.Contains(r.text, word) {
			f.t.Errorf("%s: failed %v, %s lacks %q", tool, failed, r.text, word)
		}
	}
}

// wantFacts requires that both forms of a result have all words.
func (r *reply) wantFacts(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(r.text, word) || !strings.Contains(r.Summary+r.Untrusted.Text, word) {
			t.Errorf("%q is missing:\n%s\n%s", word, r.text, r.Untrusted.Text)
		}
	}
}

func (f *fixture) start(name, id string) {
	f.t.Helper()
	if _, err := f.hub.Client.Start(f.t.Context(), name, 7, client.WithInstanceID(id)); err != nil {
		f.t.Fatal(err)
	}
}

func at(after time.Duration, e history.Event) history.Event {
	e.Time = began.Add(after)
	return e
}

// items returns a list of the data.
func (r *reply) items(t *testing.T, name string) []map[string]any {
	t.Helper()
	list, ok := r.Untrusted.Data[name].([]any)
	if !ok {
		t.Fatalf("%v has no list %s", r.Untrusted.Data, name)
	}
	items := make([]map[string]any, len(list))
	for i := range list {
		items[i], _ = list[i].(map[string]any)
	}
	return items
}
