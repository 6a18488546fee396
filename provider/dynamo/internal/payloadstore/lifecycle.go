package payloadstore

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/internal/awsrequest"
)

// ExpiryRule is a lifecycle rule of a bucket that deletes objects.
type ExpiryRule struct {
	// Prefix is the prefix of the keys to which the rule applies. Empty means all keys.
	Prefix string
	// Filtered is true if the rule applies only to objects with certain tags or sizes.
	Filtered bool
	// Days is the age at which objects are deleted, or 0 if they are deleted at a fixed date.
	Days int
}

// ExpiryRules returns the enabled lifecycle rules of a bucket that delete objects.
func (b *Client) ExpiryRules(ctx context.Context, bucket string) ([]ExpiryRule, error) {
	response, err := b.send(ctx, &request{
		method: http.MethodGet, bucket: bucket, query: url.Values{"lifecycle": {""}},
	}, responseLimit)
	if e, ok := errors.AsType[*awsrequest.APIError](err); ok && e.Code == "NoSuchLifecycleConfiguration" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dynamo: read lifecycle rules of bucket %s: %w", bucket, err)
	}
	return decodeExpiryRules(response)
}

// lifecycle is the lifecycle configuration of a bucket in the XML format of S3.
type lifecycle struct {
	Rules []struct {
		Status string     `xml:"Status"`
		Prefix string     `xml:"Prefix"`
		Filter ruleFilter `xml:"Filter"`
		Expiry *expiry    `xml:"Expiration"`
	} `xml:"Rule"`
}

type expiry struct {
	Days int    `xml:"Days"`
	Date string `xml:"Date"`
}

// ruleFilter is the filter of a rule, with one condition or several.
type ruleFilter struct {
	condition
	And condition `xml:"And"`
}

type condition struct {
	Prefix      string      `xml:"Prefix"`
	Tags        []*struct{} `xml:"Tag"`
	GreaterThan *int64      `xml:"ObjectSizeGreaterThan"`
	LessThan    *int64      `xml:"ObjectSizeLessThan"`
}

func (c *condition) selective() bool {
	return len(c.Tags) > 0 || c.GreaterThan != nil || c.LessThan != nil
}

func decodeExpiryRules(response []byte) (rules []ExpiryRule, err error) {
	var l lifecycle
	if err := xml.Unmarshal(response, &l); err != nil {
		return nil, fmt.Errorf("dynamo: decode S3 response: %w", err)
	}
	for i := range l.Rules {
		r := &l.Rules[i]
		// the rule may apply only to old versions
		if r.Status != "Enabled" || r.Expiry == nil || r.Expiry.Days == 0 && r.Expiry.Date == "" {
			continue
		}
		rules = append(rules, ExpiryRule{
			Prefix:   r.Prefix + r.Filter.Prefix + r.Filter.And.Prefix, // a filter has one of the two forms
			Filtered: r.Filter.selective() || r.Filter.And.selective(), Days: r.Expiry.Days,
		})
	}
	return rules, nil
}
