//go:build perdure_quick

package client

import "time"

// quietTime is for tests on a local cloud, whose SQS deletes at once. No release is built with this tag.
const quietTime = time.Second
