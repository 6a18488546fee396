package httpapi

// Route is one registered route, for the test that holds them against the OpenAPI document.
type Route struct {
	Method, Path string
	Query        []string
}

// Routes lists what the handler has registered.
func Routes() []Route {
	var all []Route
	for _, r := range routes() {
		all = append(all, Route{r.method, r.path, r.query})
	}
	return all
}

// WireSize is how many bytes a body is reckoned to take in a Lambda's answer.
func WireSize(body []byte) int { return wireSize(body) }
