package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Without this behavior, the first Ctrl-C at a prompt has no effect.
func TestConfirm_interruptedPrompt_returnsCause(t *testing.T) {
	terminal, keyboard := io.Pipe()
	t.Cleanup(func() { _ = keyboard.Close() })
	ctx, interrupt := context.WithCancelCause(t.Context())
	cause := errors.New("interrupt")
	interrupt(cause)

	env := &cli.Env{Stdin: terminal, Stderr: io.Discard}
	if err := env.Confirm(ctx, "pause"); !errors.Is(err, cause) {
		t.Errorf("Confirm returned %v, want the cause of the interruption", err)
	}
}

func TestConfirm_answers_onlyYesConfirms(t *testing.T) {
	for _, test := range []struct {
		answer    string
		confirmed bool
	}{{"yes\n", true}, {" yes \n", true}, {"y\n", false}, {"no\n", false}, {"", false}} {
		var prompt bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(test.answer), Stderr: &prompt}
		err := env.Confirm(t.Context(), "pause")
		if (err == nil) != test.confirmed {
			t.Errorf("answer %q: Confirm returned %v", test.answer, err)
		}
		if got := prompt.String(); got != "pause: continue? [yes/no] " {
			t.Errorf("prompt %q", got)
		}
	}
}
