package awsrequest

import (
	"cmp"
	"strings"

	"github.com/aws/smithy-go/encoding/httpbinding"
)

// domains has the DNS suffixes of the partitions of AWS that do not use amazonaws.com, by the prefix of their regions.
var domains = map[string]string{
	"cn-": "amazonaws.com.cn", "eusc-": "amazonaws.eu", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov",
	"us-isof-": "csp.hci.ic.gov", "eu-isoe-": "cloud.adc-e.uk",
}

// Domain returns the DNS suffix of the endpoints of a region.
func Domain(region string) string {
	for prefix, domain := range domains {
		if strings.HasPrefix(region, prefix) {
			return domain
		}
	}
	return "amazonaws.com"
}

// Endpoint returns the endpoint of a service without a final slash: the given one, such as that of an emulator, or that
// of the region.
func Endpoint(service, region, given string) string {
	return strings.TrimSuffix(cmp.Or(given, "https://"+service+"."+region+"."+Domain(region)), "/")
}

// ObjectURL returns the URL of an S3 object, or of the bucket if the key is empty. The endpoint is that of an emulator,
// or empty.
func ObjectURL(endpoint, region, bucket, key string) string {
	path := "/" + httpbinding.EscapePath(key, false) // the form that is signed
	host := "s3." + region + "." + Domain(region)
	switch {
	case endpoint != "":
		return strings.TrimSuffix(endpoint, "/") + "/" + bucket + path
	case strings.Contains(bucket, "."): // the certificate of S3 does not match such a host
		return "https://" + host + "/" + bucket + path
	default:
		return "https://" + bucket + "." + host + path
	}
}
