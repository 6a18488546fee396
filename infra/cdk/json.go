package cdk

import "strings"

// jsonField is a name and its value, already in JSON. Values hold CDK tokens,
// which encoding/json would escape beyond recognition.
type jsonField struct{ name, value string }

func jsonObject(fields []jsonField) string {
	members := make([]string, 0, len(fields))
	for _, f := range fields {
		members = append(members, quoted(f.name)+":"+f.value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// quoted is for names and URLs, which hold nothing that JSON escapes.
func quoted(s string) string { return `"` + s + `"` }
