package cdk

import "strings"

// jsonField is a field of a JSON object with its value in JSON. It replaces encoding/json, which would escape the CDK
// tokens in values.
type jsonField struct{ name, value string }

func jsonObject(fields []jsonField) string {
	members := make([]string, 0, len(fields))
	for _, f := range fields {
		members = append(members, quoted(f.name)+":"+f.value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// quoted quotes a name or URL, which has no characters that JSON escapes.
func quoted(s string) string { return `"` + s + `"` }
