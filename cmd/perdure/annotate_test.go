package main

import (
	"strings"
	"testing"
)

func TestAnnotate_note_isShownByStatusAndHistory(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	if out := h.mustRun("annotate", "one", "refund is ticket 4711"); out != "" {
		t.Errorf("printed %q", out)
	}
	const want = `: "refund is ticket 4711"`
	for _, command := range []string{"status", "history"} {
		if out := h.mustRun(command, "one"); !strings.Contains(out, want) {
			t.Errorf("perdure %s prints %q, want %s", command, out, want)
		}
	}
	h.wantError(1, "note must be 1 to 1024 bytes", "annotate", "one", "")
	h.wantError(1, "payload too large: 1025 bytes, limit 1024", "annotate", "one", strings.Repeat("a", 1025))
	h.wantError(1, "expected 2 arguments", "annotate", "one")
}
