package logevent_test

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/perdure/perdure/internal/docpage"
)

var update = flag.Bool("update", false, "write the events into docs/reference/log-events.md")

const (
	root          = "../.."
	page, section = root + "/docs/reference/log-events.md", "events"
)

// metricLine is the message of log lines that contain only metrics, in the format of CloudWatch.
const metricLine = "metrics"

func TestLogEventsPage_matchesTheCode(t *testing.T) {
	t.Parallel()
	code, err := parseModule(root)
	if err != nil {
		t.Fatal(err)
	}
	text := entries(code.events(), byEvent(code.calls()))
	if *update {
		if err := docpage.Write(page, section, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(page, section)
	if err != nil {
		t.Fatal(err)
	}
	if got != text {
		t.Error("docs/reference/log-events.md differs from the code: run go test ./internal/logevent -update")
	}
}

func TestLogCalls_haveEvents(t *testing.T) {
	t.Parallel()
	code, err := parseModule(root)
	if err != nil {
		t.Fatal(err)
	}
	all := code.calls()
	if len(all) < 100 {
		t.Fatalf("%d log calls were found", len(all))
	}
	messages := map[string]string{}
	for _, c := range all {
		switch {
		case c.message == metricLine || c.level == "debug" && c.event == "":
			continue
		case c.message == "":
			t.Errorf("%s: the message of a log line is not a string literal", c.at)
		case c.event == "":
			t.Errorf("%s: %q has no attribute \"event\" with a constant of logevent", c.at, c.message)
		case messages[c.event] == "":
			messages[c.event] = c.message
		case messages[c.event] != c.message:
			t.Errorf("%s: %s has the messages %q and %q", c.at, c.event, messages[c.event], c.message)
		}
	}
}

var eventName = regexp.MustCompile(`^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$`)

func TestLogEvents_areNamedDocumentedAndUsed(t *testing.T) {
	t.Parallel()
	code, err := parseModule(root)
	if err != nil {
		t.Fatal(err)
	}
	used, names := byEvent(code.calls()), map[string]string{}
	for _, s := range code.events() {
		for _, e := range s.events {
			if !eventName.MatchString(e.name) {
				t.Errorf("%s is %q, want <subject>.<past participle or state>", e.constant, e.name)
			}
			if other := names[e.name]; other != "" {
				t.Errorf("%s and %s are both %q", e.constant, other, e.name)
			}
			names[e.name] = e.constant
			if e.meaning == "" {
				t.Errorf("the comment of %s does not start with \"%[1]s means that\"", e.constant)
			}
			if len(used[e.constant]) == 0 {
				t.Errorf("no call logs %s", e.constant)
			}
		}
	}
}

func byEvent(all []call) map[string][]call {
	by := map[string][]call{}
	for _, c := range all {
		by[c.event] = append(by[c.event], c)
	}
	return by
}

// common are attributes that the page explains once and omits from its entries.
var common = []string{"activity", "activityId", "attempt", "error", "execution", "hub", "instance", "queue"}

// entries returns the text of the page's section.
func entries(sections []eventSection, used map[string][]call) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		for _, e := range s.events {
			levels, attributes := map[string]bool{}, []string{}
			for _, c := range used[e.constant] {
				levels[c.level] = true
				for _, a := range c.attributes {
					if !slices.Contains(common, a) && !slices.Contains(attributes, a) {
						attributes = append(attributes, a)
					}
				}
			}
			about := strings.Join(slices.Sorted(maps.Keys(levels)), " or ")
			if len(attributes) > 0 {
				about += ": " + strings.Join(attributes, ", ")
			}
			fmt.Fprintf(&b, "- `%s` (%s)", e.name, about)
			if meaning := unimplied(e); meaning != "" {
				b.WriteString(" " + capitalized(meaning))
			}
			if e.action != "" {
				b.WriteString(" **Action:** " + e.action)
			}
			b.WriteString("\n")
		}
	}
	return b.String() + "\n"
}

// serviceFailed is the cause that the page describes once for all events whose names end in "_failed".
var serviceFailed = regexp.MustCompile(
	`^(DynamoDB|SQS|DynamoDB or SQS) (throttles or is|failed or was) unavailable\. ?`,
)

// unimplied returns the meaning of an event without the cause that its name implies.
func unimplied(e event) string {
	if !strings.HasSuffix(e.name, "_failed") {
		return e.meaning
	}
	return serviceFailed.ReplaceAllString(e.meaning, "")
}

func capitalized(s string) string {
	for i, r := range s {
		return string(unicode.ToUpper(r)) + s[i+len(string(r)):]
	}
	return s
}
