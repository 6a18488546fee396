package response

import "net/http"

// Recorder records the status for the log. It drops the body of a response to HEAD, which not every server does.
type Recorder struct {
	http.ResponseWriter

	Head   bool
	Status int
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	r.Status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(b []byte) (int, error) {
	if r.Status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.Head {
		return len(b), nil
	}
	return r.ResponseWriter.Write(b) //nolint:wrapcheck // the wrapped writer's error
}
