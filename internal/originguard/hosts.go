package originguard

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Hosts is the set of host names under which a server accepts requests. The zero value accepts none.
type Hosts struct {
	all   bool
	names map[string]bool // lower case, as "host" for every port or as "host:port"
}

// Loopback returns the host names of a server that listens on a port of this machine's loopback interface.
func Loopback(port int) Hosts {
	h := Hosts{names: map[string]bool{}}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		h.add(host, port)
	}
	return h
}

// ForAddress returns the host names of a server that listens on an address. These are the names of Loopback, and the
// address itself if clients can connect to it.
func ForAddress(a *net.TCPAddr) Hosts {
	h := Loopback(a.Port)
	if len(a.IP) > 0 && !a.IP.IsUnspecified() {
		h.add(a.IP.String(), a.Port)
	}
	return h
}

const httpPort = 80

// add adds a host with its port, which browsers omit if it is the port of HTTP.
func (h Hosts) add(host string, port int) {
	withPort := net.JoinHostPort(host, strconv.Itoa(port))
	h.names[withPort] = true
	if port == httpPort {
		h.names[strings.TrimSuffix(withPort, ":"+strconv.Itoa(httpPort))] = true
	}
}

// ParseHosts parses host names that are separated by commas. A name is a host, which matches every port of that host,
// or a host and a port. "*" matches every host.
func ParseHosts(list string) (Hosts, error) {
	h := Hosts{names: map[string]bool{}}
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "":
		case name == "*":
			h.all = true
		case !isHost(name):
			return Hosts{}, fmt.Errorf("%q is not a host such as api.example.com or 10.0.3.7:8080", name)
		default:
			h.names[name] = true
		}
	}
	return h, nil
}

// isHost reports whether name has the form of a Host header.
func isHost(name string) bool {
	host, port := splitPort(name)
	if _, err := strconv.ParseUint(port, 10, 16); port != "" && err != nil {
		return false
	}
	if ip, bracketed := strings.CutPrefix(host, "["); bracketed {
		ip, closed := strings.CutSuffix(ip, "]")
		return closed && net.ParseIP(ip) != nil
	}
	const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
	return host != "" && strings.Trim(host, hostCharacters) == ""
}

// splitPort splits "host:port"; the port is empty if there is none. The host includes the brackets of an IPv6 address.
func splitPort(name string) (host, port string) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 || strings.HasSuffix(name, "]") {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// Empty reports whether h accepts no host.
func (h Hosts) Empty() bool { return !h.all && len(h.names) == 0 }

// Join returns the hosts that h or other accepts.
func (h Hosts) Join(other Hosts) Hosts {
	joined := Hosts{all: h.all || other.all, names: map[string]bool{}}
	for _, names := range []map[string]bool{h.names, other.names} {
		for name := range names {
			joined.names[name] = true
		}
	}
	return joined
}

// Accept reports whether h accepts this Host header.
func (h Hosts) Accept(host string) bool {
	host = strings.ToLower(host)
	name, port := splitPort(host)
	return h.all || isHost(host) && (h.names[host] || port != "" && h.names[name])
}

// Handler passes requests whose Host header h accepts to next, and rejects others with status 421. fix completes the
// error message with instructions to allow the host.
func (h Hosts) Handler(next http.Handler, fix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Accept(r.Host) {
			detail := "this server does not accept the host " + strconv.Quote(r.Host) + ": " + fix
			reject(w, http.StatusMisdirectedRequest, "forbidden_host", detail)
			return
		}
		next.ServeHTTP(w, r)
	})
}
