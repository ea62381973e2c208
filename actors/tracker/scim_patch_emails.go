package tracker

import (
	"slices"
	"strings"
)

// maxSCIMEmails limits a user's addresses.
const maxSCIMEmails = 20

// applyEmails applies an edit of a user's addresses.
func (e *scimEdit) applyEmails(u *SCIMUserAttributes) error {
	emails := slices.Clone(u.Emails)
	var err error
	switch {
	case !e.path.selects && e.path.sub == "":
		emails, err = e.wholeEmails(emails)
	default:
		emails, err = e.someEmails(emails)
	}
	if err != nil {
		return err
	}
	if len(emails) > maxSCIMEmails {
		return tooManySCIMEmails()
	}
	u.Emails = emails
	if len(emails) == 0 {
		u.Emails = nil
	}
	return nil
}

func tooManySCIMEmails() error {
	return scimRefusal(scimInvalidValue, "A user has at most 20 emails.")
}

// wholeEmails applies an edit of the whole list. It compares each address with those before it,
// so it refuses a value with too many before it looks at them.
func (e *scimEdit) wholeEmails(emails []SCIMEmail) ([]SCIMEmail, error) {
	if e.remove || e.value == nil {
		return nil, nil
	}
	values, ok := scimObjects(e.value)
	if !ok {
		return nil, scimRefusal(scimInvalidValue, "emails must be an array of objects.")
	}
	if len(values) > maxSCIMEmails {
		return nil, tooManySCIMEmails()
	}
	if !e.add {
		emails = nil
	}
	for _, value := range values {
		var email SCIMEmail
		for _, sub := range [...]string{"value", "type", "primary"} {
			if err := email.set(sub, scimProperty(value, sub)); err != nil {
				return nil, err
			}
		}
		if email.Value == "" {
			continue
		}
		same := slices.IndexFunc(emails, func(other SCIMEmail) bool {
			return strings.EqualFold(other.Value, email.Value) && other.Type == email.Type
		})
		if same < 0 {
			emails = append(emails, email)
			same = len(emails) - 1
		}
		if email.Primary {
			onlyPrimary(emails, same)
		}
	}
	return emails, nil
}

// someEmails applies an edit of the addresses that a filter selects. If there is none
// and the edit is not a removal, it adds an address that the filter selects: providers
// set emails[type eq "work"].value without checking whether it exists.
func (e *scimEdit) someEmails(emails []SCIMEmail) ([]SCIMEmail, error) {
	found := false
	for i := 0; i < len(emails); i++ {
		if !emails[i].satisfies(e.path.terms) {
			continue
		}
		found = true
		if e.remove && e.path.sub == "" {
			emails = slices.Delete(emails, i, i+1)
			i--
			continue
		}
		if err := e.editEmail(emails, i); err != nil {
			return nil, err
		}
	}
	emails = slices.DeleteFunc(emails, func(email SCIMEmail) bool { return email.Value == "" })
	if found || e.remove {
		return emails, nil
	}
	var made SCIMEmail
	for _, t := range e.path.terms {
		var value any = t.value
		if err := made.set(t.attribute, value); err != nil {
			return nil, err
		}
	}
	emails = append(emails, made)
	if err := e.editEmail(emails, len(emails)-1); err != nil {
		return nil, err
	}
	if emails[len(emails)-1].Value == "" {
		return nil, scimRefusal(scimNoTarget, "No e-mail address of the user matches the path's filter.")
	}
	return emails, nil
}

// editEmail changes one address.
func (e *scimEdit) editEmail(emails []SCIMEmail, at int) error {
	email := &emails[at]
	was := email.Primary
	if e.path.sub != "" {
		value := e.value
		if e.remove {
			value = nil
		}
		if err := email.set(e.path.sub, value); err != nil {
			return err
		}
	} else {
		values, ok := scimObjects(e.value)
		if !ok || len(values) != 1 {
			return scimRefusal(scimInvalidValue, "The value must be an object.")
		}
		for sub, value := range values[0] {
			if err := email.set(strings.ToLower(sub), value); err != nil {
				return err
			}
		}
	}
	if email.Primary && !was {
		onlyPrimary(emails, at)
	}
	return nil
}

// onlyPrimary makes one address the only primary one.
func onlyPrimary(emails []SCIMEmail, at int) {
	for i := range emails {
		emails[i].Primary = i == at
	}
}

// set sets one sub-attribute of an address.
func (m *SCIMEmail) set(sub string, value any) error {
	if sub == "primary" {
		m.Primary = false
		if value == nil {
			return nil
		}
		primary, err := scimTruth(value)
		if err != nil {
			return scimRefusal(scimInvalidValue, "An e-mail address's primary must be true or false.")
		}
		m.Primary = primary
		return nil
	}
	text, ok := value.(string)
	if value != nil && !ok || len([]rune(text)) > 254 || !indexable(text) {
		return scimRefusal(scimInvalidValue, "An e-mail address's "+sub+" must be a string of at most 254 characters.")
	}
	switch sub {
	case "value":
		m.Value = text
	case "type":
		m.Type = text
	case "display", "$ref":
	default:
		return scimRefusal(scimInvalidPath, "A path names a part that e-mail addresses do not have.")
	}
	return nil
}

// satisfies reports whether an address satisfies the terms of a filter.
func (m *SCIMEmail) satisfies(terms []scimTerm) bool {
	for _, t := range terms {
		var holds bool
		switch t.attribute {
		case "value":
			holds = strings.EqualFold(m.Value, t.value)
		case "type":
			holds = strings.EqualFold(m.Type, t.value)
		case "primary":
			holds = strings.EqualFold(t.value, "true") == m.Primary
		}
		if !holds {
			return false
		}
	}
	return true
}
