package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

const notes = inUse + "/notes"

func TestAnnotate_note_isInTheStatusAndTheHistory(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPost, notes, `{"note":"ask ann \"first\""}`).want(http.StatusNoContent)
	const want = `"notes":[{"text":"ask ann \"first\"","at":"2026-07-01T03:00:00Z"}]`
	for _, target := range []string{inUse, inUse + "/history"} {
		if a := h.call(t, http.MethodGet, target, "").want(http.StatusOK); !strings.Contains(a.Body.String(), want) {
			t.Errorf("GET %s: %s, want %s", target, a.Body, want)
		}
	}
	if a := h.call(t, http.MethodGet, "/v1/instances", ""); strings.Contains(a.Body.String(), `"notes"`) {
		t.Errorf("a list has notes: %s", a.Body)
	}
	over := strings.Replace(notes, "one", "over", 1)
	h.call(t, http.MethodPost, over, `{"note":"refunded"}`).want(http.StatusNoContent)
	if log := h.log.String(); !strings.Contains(log, "operation=annotate instance=over requestedBy=client") {
		t.Errorf("logged %s", log)
	}
}

func TestAnnotate_repeatedKey_addsOneNote(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for _, key := range []string{"k", "k", "l"} {
		h.call(t, http.MethodPost, notes, `{"note":"a"}`, "Idempotency-Key", key).want(http.StatusNoContent)
	}
	a := h.call(t, http.MethodGet, inUse, "").want(http.StatusOK)
	if n := strings.Count(a.Body.String(), `"text":"a"`); n != 2 || !strings.Contains(a.Body.String(), `"id":"k"`) {
		t.Errorf("%d notes: %s", n, a.Body)
	}
	h.call(t, http.MethodPost, notes, `{"note":"a"}`, "Idempotency-Key", "a,b").wantProblem(http.StatusBadRequest,
		"invalid_request", "Idempotency-Key")
}

func TestAnnotate_invalidNote_isAProblem(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for body, field := range map[string]string{
		`{}`: "note", `{"note":""}`: "note", `{"note":1}`: "note", `{"text":"a"}`: "text", ``: "body",
	} {
		h.call(t, http.MethodPost, notes, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
	large := `{"note":"` + strings.Repeat("a", 1025) + `"}`
	h.call(t, http.MethodPost, notes, large).wantProblem(http.StatusRequestEntityTooLarge, "payload_too_large", "note")
	h.call(t, http.MethodPost, "/v1/instances/missing/notes", `{"note":"a"}`).
		wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
}

// annotateResponses returns each response that the document describes for a note.
func annotateResponses(t *testing.T, failures ...error) (all []callResponse) {
	t.Helper()
	h := newRunningHub(t)
	for _, body := range []string{`{"note":"a"}`, `{}`, `{"note":"` + strings.Repeat("a", 1025) + `"}`} {
		all = append(all, h.call(t, http.MethodPost, notes, body))
	}
	all = append(all, h.call(t, http.MethodPost, notes, `{}`, "Content-Type", "text/plain"),
		h.call(t, http.MethodPost, "/v1/instances/missing/notes", `{"note":"a"}`))
	for _, failure := range failures {
		all = append(all, request{http.MethodPost, notes, `{"note":"a"}`, nil, failure}.of(t, h))
	}
	return all
}
