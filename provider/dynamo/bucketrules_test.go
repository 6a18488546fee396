package dynamo_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/perdure/perdure/provider/dynamo"
)

//nolint:lll // XML as S3 returns it
const lifecycle = `<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<Rule><ID>a</ID><Filter><Prefix>orders/m/</Prefix></Filter><Status>Enabled</Status><Expiration><Days>60</Days></Expiration></Rule>
<Rule><Prefix>old/</Prefix><Status>Enabled</Status><Expiration><Days>7</Days></Expiration></Rule>
<Rule><Filter><And><Prefix>tagged/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>
<Rule><Filter><ObjectSizeGreaterThan>500</ObjectSizeGreaterThan></Filter><Status>Enabled</Status><Expiration><Date>2027-01-01T00:00:00Z</Date></Expiration></Rule>
<Rule><Filter><Prefix>off/</Prefix></Filter><Status>Disabled</Status><Expiration><Days>1</Days></Expiration></Rule>
<Rule><Filter/><Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration></Rule>
</LifecycleConfiguration>`

// ExpiryRules returns only the enabled rules by which objects expire.
func TestExpiryRules_lifecycleOfABucket_returnsItsExpirations(t *testing.T) {
	t.Parallel()
	rules := func(next response) ([]dynamo.ExpiryRule, *fakeS3, error) {
		cfg, a := configOf("eu-central-1", next)
		got, err := dynamo.ExpiryRules(t.Context(), cfg, "payloads")
		return got, a, err
	}
	got, a, err := rules(mentions(http.StatusOK, lifecycle))
	want := []dynamo.ExpiryRule{
		{Prefix: "orders/m/", Days: 60},
		{Prefix: "old/", Days: 7},
		{Prefix: "tagged/", Filtered: true, Days: 1},
		{Filtered: true},
	}
	if err != nil || !slices.Equal(got, want) || a.got[0].URL.RawQuery != "lifecycle=" {
		t.Errorf("got %+v, error %v, request %s", got, err, a.got[0].URL)
	}
	if got, _, err := rules(refuses(http.StatusNotFound, "NoSuchLifecycleConfiguration")); err != nil || got != nil {
		t.Errorf("bucket without rules: got %v, error %v", got, err)
	}
	if _, _, err := rules(refuses(http.StatusForbidden, "AccessDenied")); err == nil {
		t.Error("no error for rules that may not be read")
	}
}
