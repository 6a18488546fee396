package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// The document has the fields of SPDX 2.3 that a Go binary's build information determines.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	CreationInfo  spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string          `json:"SPDXID"`
	Name             string          `json:"name"`
	VersionInfo      string          `json:"versionInfo"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	CopyrightText    string          `json:"copyrightText"`
	PrimaryPurpose   string          `json:"primaryPackagePurpose"`
	Comment          string          `json:"comment,omitempty"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	ExternalRefs     []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const (
	spdxDocumentID  = "SPDXRef-DOCUMENT"
	spdxBinaryID    = "SPDXRef-Binary"
	spdxNoAssertion = "NOASSERTION"
)

// notInID matches the characters that an SPDX identifier cannot have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// writeSBOM writes the SPDX document of a Go binary. Two builds of the same source have the same document.
func writeSBOM(root, binary, name string) error {
	list, err := os.ReadFile(filepath.Join(root, thirdPartyFile)) //nolint:gosec // a file of this repository
	if err != nil {
		return fmt.Errorf("read the licenses: %w", err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", binary, err)
	}
	content, err := os.ReadFile(binary) //nolint:gosec // the binary that this command describes
	if err != nil {
		return fmt.Errorf("read the binary: %w", err)
	}
	document := describeBinary(filepath.Base(binary), content, info, listedLicenses(string(list)))
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("write the SPDX document: %w", err)
	}
	return writeFile(name, append(text, '\n'))
}

// describeBinary returns the document of a binary: its main module, the modules that it contains, and Go.
func describeBinary(name string, content []byte, info *debug.BuildInfo, licenses map[string]string) spdxDocument {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	created := settings["vcs.time"]
	if created == "" {
		created = time.Unix(0, 0).UTC().Format(time.RFC3339)
	}
	title := strings.Join([]string{name, info.Main.Version, settings["GOOS"], settings["GOARCH"]}, "-")
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: spdxDocumentID, Name: title,
		Namespace:    "https://" + modulePath + "/spdx/" + title + "-" + digest,
		CreationInfo: spdxCreation{Created: created, Creators: []string{"Tool: perdure-release"}},
		Packages: []spdxPackage{{
			ID: spdxBinaryID, Name: name, VersionInfo: info.Main.Version, DownloadLocation: "https://" + modulePath,
			LicenseConcluded: ownLicense, LicenseDeclared: ownLicense, CopyrightText: spdxNoAssertion,
			PrimaryPurpose: "APPLICATION", Checksums: []spdxChecksum{{"SHA256", digest}},
			ExternalRefs: []spdxReference{purl(info.Main.Path, info.Main.Version)},
		}},
		Relationships: []spdxRelationship{{spdxDocumentID, "DESCRIBES", spdxBinaryID}},
	}
	d.add(0, spdxPackage{
		Name: "stdlib", VersionInfo: info.GoVersion, DownloadLocation: "https://go.dev/dl/",
		LicenseConcluded: "BSD-3-Clause",
		ExternalRefs:     []spdxReference{purl("stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
	})
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.add(i+1, spdxPackage{
			Name: m.Path, VersionInfo: m.Version, DownloadLocation: spdxNoAssertion, Comment: "go.sum: " + m.Sum,
			LicenseConcluded: cmp.Or(licenses[m.Path], spdxNoAssertion),
			ExternalRefs:     []spdxReference{purl(m.Path, m.Version)},
		})
	}
	return d
}

// add adds a library that the binary contains.
func (d *spdxDocument) add(i int, p spdxPackage) {
	p.ID = "SPDXRef-Package-" + strconv.Itoa(i) + "-" + strings.Trim(notInID.ReplaceAllString(p.Name, "-"), "-")
	p.LicenseDeclared, p.CopyrightText, p.PrimaryPurpose = p.LicenseConcluded, spdxNoAssertion, "LIBRARY"
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{spdxBinaryID, "CONTAINS", p.ID})
}

func purl(module, version string) spdxReference {
	return spdxReference{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module + "@" + url.QueryEscape(version)}
}

// listedLicenses returns the SPDX expressions of the modules in THIRD_PARTY.md.
func listedLicenses(list string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(list) {
		cells := strings.Split(line, " | ")
		if path, ok := strings.CutPrefix(cells[0], "| `"); ok && len(cells) > 1 {
			all[strings.TrimSuffix(path, "`")] = strings.ReplaceAll(cells[1], ", ", " AND ")
		}
	}
	return all
}
