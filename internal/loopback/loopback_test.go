package loopback

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOnlyThisMachinesNamesArePassedOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port int
		host string
		want int
	}{
		{8090, "127.0.0.1:8090", http.StatusOK},
		{8090, "localhost:8090", http.StatusOK},
		{8090, "[::1]:8090", http.StatusOK},
		{8090, "127.0.0.1", http.StatusMisdirectedRequest},
		{8090, "evil.example:8090", http.StatusMisdirectedRequest},
		{8090, "", http.StatusMisdirectedRequest},
		{80, "127.0.0.1", http.StatusOK},
		{80, "evil.example", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(http.MethodGet, "/ui", http.NoBody)
		r.Host = c.host
		w := httptest.NewRecorder()
		Only(c.port, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("port %d, %q: status %d, want %d", c.port, c.host, w.Code, c.want)
		}
	}
}
