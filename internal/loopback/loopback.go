// Package loopback guards servers that listen for this machine alone.
package loopback

import (
	"net"
	"net/http"
	"strconv"
)

// Only passes on the requests that name this machine's loopback and port, and refuses those under any other name with 421: a page of another
// site may have its own name resolve to 127.0.0.1, and a browser then takes what is served here for that site's own.
func Only(port int, next http.Handler) http.Handler {
	ours := map[string]bool{}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		ours[net.JoinHostPort(host, strconv.Itoa(port))] = true
	}
	if port == 80 { // browsers leave it out
		ours["127.0.0.1"], ours["localhost"], ours["[::1]"] = true, true, true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ours[r.Host] {
			http.Error(w, "this machine is not served here under the name "+strconv.Quote(r.Host)+": open the address that was printed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
