package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// LogAPI reads lines of CloudWatch Logs.
type LogAPI interface {
	// Lines returns the lines of a log group that contain a text.
	Lines(ctx context.Context, group, text string) ([]string, error)
}

// expectedLine is a line that the log of the function must have.
type expectedLine struct{ what, text string }

// logLevel lets the function log lines without a level or without a time, and fail in two ways. Lambda treats the first
// two as INFO and keeps them. A line of the level DEBUG with a time shows that it drops others.
func (p *lambdaProbes) logLevel(ctx context.Context) (string, error) {
	began := p.Now()
	id := "selftest-" + strconv.FormatInt(began.UnixNano(), 10)
	plain, untimed, rejected, dropped := id+"-plain", id+"-untimed", id+"-rejected", id+"-dropped"
	debug := func(text, at string) string { return fmt.Sprintf(`{%s"level":"DEBUG","msg":%q}`, at, text) }
	for _, line := range []string{
		plain, debug(untimed, ""), debug(dropped, fmt.Sprintf(`"time":%q,`, began.UTC().Format(time.RFC3339Nano))),
	} {
		if err := p.log(ctx, line); err != nil {
			return "", err
		}
	}
	// The function rejects a message without attributes. Lambda's library for Go logs the error.
	event := map[string]any{"Records": []any{map[string]string{"messageId": rejected, "body": "{}"}}}
	if _, err := p.fail(ctx, event); err != nil {
		return "", err
	}
	late := -time.Minute
	expired, err := p.fail(ctx, map[string]any{"call": &probefunction.Call{UntilDeadline: &late}})
	if err != nil {
		return "", err
	}
	lines, err := p.awaitLines(ctx, id, expired, []expectedLine{
		{"a line without a level", plain},
		{"a line without a time", untimed},
		{"the error of an invocation", rejected},
		{"an invocation that exceeds its timeout", expired},
	})
	if err != nil {
		return "", err
	}
	if hasText(lines, dropped) {
		return "", undecided(errors.New("a line of a lower level is in the log too"))
	}
	return fmt.Sprintf("lines without a level or a time, and of failed invocations, after %v",
		p.Now().Sub(began).Round(time.Second)), nil
}

// log lets the function log a line, some time before the end of its invocation, because ministack reads it meanwhile.
func (p *lambdaProbes) log(ctx context.Context, line string) error {
	_, err := p.invoke(ctx, p.MappedName, &probefunction.Call{Line: line, Duration: 200 * time.Millisecond})
	return err
}

func hasText(lines []string, text string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) })
}

// awaitLines waits until the log of the function has expected lines, and returns the lines with one of two texts. If
// the log has none of them, the function may not be allowed to write it, so this shows nothing.
func (p *lambdaProbes) awaitLines(
	ctx context.Context, first, second string, want []expectedLine,
) (lines []string, err error) {
	const limit, pause = 2 * time.Minute, 5 * time.Second
	err = p.untilRead(ctx, limit, pause, func() (missing, err error) {
		lines = nil
		for _, text := range []string{first, second} {
			found, err := p.Logs.Lines(ctx, p.MappedLogs, text)
			if err != nil {
				return nil, err
			}
			lines = append(lines, found...)
		}
		for _, w := range want {
			if !hasText(lines, w.text) {
				missing = fmt.Errorf("%s is not in the log after %v", w.what, limit)
				break
			}
		}
		if len(lines) == 0 {
			missing = undecided(missing)
		}
		return missing, nil
	})
	return lines, err
}
