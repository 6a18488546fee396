package apiclient

import (
	"net"
	"slices"
	"strings"
)

// The services for which requests to hosts of AWS are signed.
const (
	ServiceAPIGateway = "execute-api"
	ServiceLambda     = "lambda"
)

// ServiceOf returns the service and the region of a host of AWS: <id>.execute-api.<region>.amazonaws.com or
// <id>.lambda-url.<region>.on.aws. Both are empty for other hosts.
func ServiceOf(host string) (service, region string) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	const name, in, fewest = 1, 2, 5
	parts := strings.Split(host, ".")
	suffixes := []string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".on.aws"}
	isAWS := slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
	switch {
	case !isAWS || len(parts) < fewest:
		return "", ""
	case parts[name] == ServiceAPIGateway, parts[name] == ServiceAPIGateway+"-fips":
		return ServiceAPIGateway, parts[in]
	case parts[name] == "lambda-url":
		return ServiceLambda, parts[in]
	default:
		return "", ""
	}
}

// IsLoopback reports whether a host is localhost or a loopback address.
func IsLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
