package dynamo

import (
	"github.com/perdure/perdure/provider"
)

var _ provider.Poller = (*Provider)(nil)
