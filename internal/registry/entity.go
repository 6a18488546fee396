package registry

import "strings"

// EntityMark begins the name of an entity's orchestration, and stands between name and key in its instance's id.
const EntityMark = "@"

// HasKey reports whether the name of an entity cannot be one, since a part of it would be taken for a key.
func HasKey(entity string) bool { return strings.Contains(entity, EntityMark) }
