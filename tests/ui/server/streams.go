package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
)

// streams controls the streams of events for the tests.
type streams struct {
	hub *hub

	mu           sync.Mutex
	open         map[*http.Request]context.CancelFunc // the streams that are open, and what ends them
	buffered     bool
	lastEventIDs []string // of all streams
}

func newStreams(h *hub) *streams {
	return &streams{hub: h, open: map[*http.Request]context.CancelFunc{}}
}

// counted serves the API and keeps its streams. It buffers them like API Gateway if a test wants it.
func (s *streams) counted(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events/stream") {
			api.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		s.mu.Lock()
		s.open[r] = cancel
		s.lastEventIDs = append(s.lastEventIDs, r.Header.Get("Last-Event-ID"))
		buffered := s.buffered
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, r)
		}()
		if buffered {
			w = struct{ http.ResponseWriter }{w} // without Flush
		}
		api.ServeHTTP(w, r.WithContext(ctx))
	})
}

// handle serves the requests of the tests.
func (s *streams) handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /test/streams", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"open": len(s.open), "lastEventIds": s.lastEventIDs})
	})
	mux.HandleFunc("POST /test/cut", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, end := range s.open {
			end()
		}
	})
	mux.HandleFunc("POST /test/buffered/{on}", func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.buffered = r.PathValue("on") == "true"
	})
	mux.HandleFunc("POST /test/events/{id}", s.appendEvents)
}

// appendEvents appends a number of events of a kind to an instance.
func (s *streams) appendEvents(w http.ResponseWriter, r *http.Request) {
	var more struct {
		Kind  history.Kind `json:"kind"`
		Count int          `json:"count"`
	}
	if err := json.NewDecoder(r.Body).Decode(&more); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all := make([]history.Event, max(more.Count, 1))
	for i := range all {
		all[i] = history.Event{Kind: more.Kind, Time: time.Now().UTC(), Name: fmt.Sprintf("event %d", i)}
	}
	s.hub.Append(r.PathValue("id"), all...)
}
