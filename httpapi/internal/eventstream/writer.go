// Package eventstream writes server-sent events.
package eventstream

import (
	"bytes"
	"net/http"
	"time"

	"github.com/perdure/perdure/httpapi/internal/response"
)

// stalled is the time after which a write to a reader that reads nothing fails.
const stalled = time.Minute

// opening sets the time after which a browser reconnects, in milliseconds. A stream without events starts with it too.
const opening = "retry: 1000\n\n"

// Writer writes the events of one response.
type Writer struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	buffered bool
	budget   *response.Buffer // nil: the size is not limited
	begun    bool
	unsent   bool // the server may hold a part of the response
}

// New returns the writer of a response. It writes nothing.
func New(w http.ResponseWriter) *Writer {
	return &Writer{w: w, control: http.NewResponseController(w), buffered: !flushes(w)}
}

// Limit limits the response to the size of a response of a Lambda function.
func (s *Writer) Limit() {
	budget, _ := response.BufferFor(opening) // a string can be encoded
	s.budget = &budget
}

// flushes reports whether the server sends parts of a response.
func flushes(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// Buffered reports whether the server sends the response as a whole.
func (s *Writer) Buffered() bool { return s.buffered }

// Begun reports whether the header was written.
func (s *Writer) Begun() bool { return s.begun }

// Begin writes the header. The time limits of the server for a response do not apply to a stream.
func (s *Writer) Begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	_ = s.control.SetWriteDeadline(time.Time{}) // not every server has deadlines
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for nginx
	s.w.WriteHeader(http.StatusOK)
	s.write([]byte(opening))
	return nil
}

// Send writes an event with its ID, unless it is empty. Flush sends it. Send returns false and the size of the event if
// a limited response has no room for it.
func (s *Writer) Send(id, name string, doc []byte) (size int, sent bool) {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(bytes.TrimSpace(doc))
	b.WriteString("\n\n")
	if s.budget != nil && !s.budget.Add(b.Bytes()) {
		return response.Size(b.Bytes()), false
	}
	_ = s.Begin()
	s.write(b.Bytes())
	return b.Len(), true
}

// Comment writes and flushes a comment, which keeps the connection open.
func (s *Writer) Comment() {
	if s.begun {
		s.write([]byte(": keep-alive\n\n"))
	} else {
		_ = s.Begin()
	}
	s.Flush()
}

// write writes to the buffer of the server, which sends it when it is full.
func (s *Writer) write(b []byte) {
	s.unlessStalled(func() { _, _ = s.w.Write(b) })
	s.unsent = true
}

// Flush sends what was written.
func (s *Writer) Flush() {
	if s.unsent && !s.buffered {
		s.unlessStalled(func() { _ = s.control.Flush() })
	}
	s.unsent = false
}

// unlessStalled calls write, which fails if the reader reads nothing. An error means that the reader has disconnected,
// which ends the context of its request.
func (s *Writer) unlessStalled(write func()) {
	abort := time.AfterFunc(stalled, func() { _ = s.control.SetWriteDeadline(time.Unix(1, 0)) })
	defer abort.Stop()
	write()
}
