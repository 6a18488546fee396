package httpapi

import "net/http"

// recorder keeps the status for the log, and leaves out the body of an answer to HEAD, which not every server in front
// of a handler does.
type recorder struct {
	http.ResponseWriter

	head   bool
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.head {
		return len(b), nil
	}
	return r.ResponseWriter.Write(b) //nolint:wrapcheck // an io.Writer's error is handed on as it is
}
