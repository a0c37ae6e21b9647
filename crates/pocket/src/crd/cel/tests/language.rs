use super::*;

fn object() -> Value {
    json!({"metadata": {"name": "me"}, "spec": {
        "name": "hello", "size": 3, "ratio": 1, "on": true,
        "when": "2024-05-01T10:20:30Z", "wait": "90m", "raw": "aGk=", "port": 80,
        "names": ["a", "b", "c"], "sizes": [3, 1, 2], "labels": {"app": "x", "a.b/c": "y"},
        "inner": {"deep": {"x": 7}}, "list": [{"key": "p", "n": 1}, {"key": "q", "n": 2}],
        "has-dash": "d", "namespace": "ns", "maybe": null,
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}},
    }})
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn expressions_hold() {
    for rule in [
        // Arithmetic, order, logic.
        "self.size + 1 == 4 && self.size * 2 - 1 == 5 && 7 / 2 == 3 && 7 % 4 == 3 && -self.size == -3",
        "self.ratio == 1.0 && self.ratio + 0.5 == 1.5 && self.size < 3.5",
        "self.size > 2 ? self.name == 'hello' : false",
        "self.on || self.sizes[9] == 1",
        "self.sizes[9] == 1 || self.on",
        "!(false && self.sizes[9] == 1)",
        "type(self.port) == int && self.port == 80 && type(self.when) == google.protobuf.Timestamp",
        "dyn(1) != dyn('1')",
        "1u + 2u == 3u && uint(3) == 3u",
        // Presence.
        "has(self.name) && !has(self.other)",
        "!has(self.labels.zzz) && has(self.labels.app)",
        "self.maybe == null",
        // Comprehensions.
        "self.list.all(e, e.n > 0) && self.list.exists(e, e.key == 'q') && self.list.exists_one(e, e.n == 1)",
        "self.list.map(e, e.n) == [1, 2] && self.sizes.map(s, s > 1, s * 10) == [30, 20]",
        "self.names.filter(n, n != 'b') == ['a', 'c']",
        "self.labels.all(k, k.size() > 2) && 'app' in self.labels && !('x' in self.labels)",
        "self.names.all(i, n, i < 3 && n != '') && self.names.transformList(i, n, n + string(i)) == ['a0', 'b1', 'c2']",
        "self.labels.transformMap(k, v, v.size()) == {'app': 1, 'a.b/c': 1}",
        "self.sizes.exists(s, s == 2 || self.sizes[s + 9] == 1)",
        // Optionals.
        "self.?other.orValue('none') == 'none' && self.?name.orValue('none') == 'hello'",
        "self.?inner.deep.x.hasValue() && self.?inner.?deep.?x.value() == 7",
        "!self.?other.hasValue() && self.labels[?'app'].orValue('') == 'x' && !self.names[?9].hasValue()",
        "optional.of(1).or(optional.none()).value() == 1 && optional.none().orValue(2) == 2",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()",
        "self.?name.optMap(n, n + '!').orValue('') == 'hello!'",
        "self.?name.optFlatMap(n, optional.of(n.size())).value() == 5",
        "[?self.?other, ?self.?name] == ['hello'] && {?'k': self.?other} == {}",
        "has(self.?inner.deep)",
        // Strings.
        "self.name.startsWith('he') && self.name.endsWith('lo') && self.name.contains('ell') && size(self.name) == 5",
        "self.name.matches('^h[a-z]+$') && !self.name.matches('^e') && matches(self.name, 'l+')",
        "self.name.find('l+') == 'll' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
        "self.name.charAt(1) == 'e' && self.name.substring(1, 3) == 'el' && self.name.indexOf('l') == 2 && self.name.lastIndexOf('l') == 3",
        "'a-b-c'.split('-') == ['a', 'b', 'c'] && 'a-b-c'.split('-', 2) == ['a', 'b-c'] && ['a', 'b'].join('-') == 'a-b'",
        "' x '.trim() == 'x' && 'Ab'.lowerAscii() == 'ab' && 'Ab'.upperAscii() == 'AB' && 'aXbX'.replace('X', '') == 'ab' && 'aXbX'.replace('X', '-', 1) == 'a-bX'",
        "'%s has %d of %.2f'.format(['a', 3, 1.5]) == 'a has 3 of 1.50'",
        "'héllo'.charAt(1) == 'é' && 'héllo'.size() == 5",
        "string(5) == '5' && int('5') == 5 && double('1.5') == 1.5 && bool('true') && string(b'x') == 'x' && bytes('hi') == self.raw",
        // Lists.
        "self.names.isSorted() && !self.sizes.isSorted() && self.sizes.min() == 1 && self.sizes.max() == 3 && self.sizes.indexOf(2) == 2",
        "self.names + ['d'] == ['a', 'b', 'c', 'd'] && sets.contains(self.names, ['a']) && !sets.intersects(self.names, ['z'])",
        "sets.equivalent(['a', 'b'], ['b', 'a', 'a'])",
        "!format.dns1123Label().validate(self.name).hasValue() && format.dns1123Label().validate('A').value().size() == 1 && format.named('uuid').hasValue() && !format.named('x').hasValue()",
        "self.labels.transformMapEntry(k, v, {v: k}) == {'x': 'app', 'y': 'a.b/c'}",
        "['a'].all(format, format.startsWith('a')) && [['x']].all(sets, sets.size() == 1)",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.2', true) && !isSemver('v1.2') && semver('1.2.3').minor() == 2",
        // Time.
        "self.when < timestamp('2025-01-01T00:00:00Z') && self.when.getFullYear() == 2024 && self.when.getMonth() == 4 && self.when.getHours('+02:00') == 12",
        "self.wait == duration('1h30m') && self.wait.getMinutes() == 90 && self.when + self.wait > self.when",
        "self.when - timestamp('2024-05-01T10:20:00Z') == duration('30s')",
        // Kubernetes' own.
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('500m')).compareTo(quantity('1')) == 0 && quantity('2k').asInteger() == 2000 && isQuantity('1x') == false",
        "isIP('10.0.0.1') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && cidr('10.0.0.0/8').containsIP('10.2.3.4') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && cidr('10.0.0.0/8').prefixLength() == 8 && ip.isCanonical('127.0.0.1')",
        "isURL('https://a.example:8443/p?q=1') && url('https://a.example:8443/p?q=1').getHostname() == 'a.example' && url('https://a/p?q=1').getQuery()['q'] == ['1']",
        // Names.
        "self.has__dash__dash == 'd' && self.__namespace__ == 'ns' && has(self.has__dash__dash)",
        "self.`has-dash` == 'd'",
        "self.labels['a.b/c'] == 'y'",
        "self.template.metadata.name == 't' && self.template.kind == 'Pod'",
        // Equality of parts.
        "self.inner == self.inner && self.list == self.list && self.list[0] != self.list[1] && [1, 2] != [1] && {'a': 1} == {'a': 1}",
    ] {
        let schema = with_rules(&json!([{"rule": rule}]));
        assert_eq!(
            outcome(&schema, &object(), None),
            Vec::<String>::new(),
            "{rule}"
        );
    }
}

#[test]
fn expressions_fail_with_reasons() {
    for (rule, reason) in [
        ("self.other == 'x'", "no such key: other"),
        ("self.sizes[9] == 1", "index out of bounds: 9"),
        ("self.size / (self.size - 3) == 1", "division by zero"),
        ("self.size + 9223372036854775807 > 0", "integer overflow"),
        ("self.name.substring(3, 1) == ''", "invalid substring range"),
        ("optional.none().value() == 1", "dereference"),
        ("quantity(self.name).sign() == 1", "quantity parse error"),
        (
            "self.port == 'http' || self.port.startsWith('h')",
            "no such overload: startsWith(int, string)",
        ),
        (
            "self.name.matches(self.name + '(')",
            "invalid regular expression",
        ),
        ("self.name == 'nope'", "failed rule: self.name == 'nope'"),
    ] {
        let schema = with_rules(&json!([{"rule": rule}]));
        let found = outcome(&schema, &object(), None);
        assert_eq!(found.len(), 1, "{rule}");
        assert!(found[0].contains(reason), "{rule}: {found:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_cannot_work_is_refused_before_there_is_an_object() {
    for (rule, reason) in [
        ("self.bogus == 1", "undefined field 'bogus'"),
        ("has(self.inner.bogus)", "undefined field 'bogus'"),
        ("self.?bogus.hasValue()", "undefined field 'bogus'"),
        ("self.list.all(e, e.bogus == 1)", "undefined field 'bogus'"),
        ("self.free.x == 1", "undefined field 'free'"),
        ("self.template.spec == 1", "undefined field 'spec'"),
        (
            "self.template.metadata.labels == 1",
            "undefined field 'labels'",
        ),
        (
            "self.name == 1",
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "self.size == 1.0",
            "found no matching overload for '_==_' applied to '(int, double)'",
        ),
        (
            "self.name > 1",
            "found no matching overload for '_>_' applied to '(string, int)'",
        ),
        (
            "self.name + 1 == 'x'",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "self.size && true",
            "found no matching overload for '_&&_' applied to '(int, bool)'",
        ),
        (
            "!self.size",
            "found no matching overload for '!_' applied to '(int)'",
        ),
        (
            "1 in self.names",
            "found no matching overload for '@in' applied to '(int, list(string))'",
        ),
        ("self.name", "must evaluate to a bool"),
        ("self.size + 1", "must evaluate to a bool"),
        (
            "frobnicate(self.name)",
            "undeclared reference to 'frobnicate'",
        ),
        (
            "self.name.frobnicate()",
            "undeclared reference to 'frobnicate'",
        ),
        ("cel.bind(a, 1, a == 1)", "undeclared reference to 'bind'"),
        (
            "[1, 'a'].size() == 2",
            "expected type 'int' but found 'string'",
        ),
        (
            "{'a': 1, 2: 1}.size() == 2",
            "expected type 'string' but found 'int'",
        ),
        ("self.wait > duration('soon')", "invalid duration argument"),
        (
            "self.when > timestamp('soon')",
            "invalid timestamp argument",
        ),
        ("this.name == ''", "undeclared reference to 'this'"),
        (
            "self.size.startsWith('x')",
            "found no matching overload for 'startsWith' applied to '(int, string)'",
        ),
        (
            "self.name.startsWith()",
            "found no matching overload for 'startsWith'",
        ),
        (
            "self.inner.all(k, true)",
            "cannot be range of a comprehension",
        ),
        (
            "self.size.all(k, true)",
            "cannot be range of a comprehension",
        ),
        ("self.name.deep == 1", "does not support field selection"),
        (
            "self.names['a'] == ''",
            "found no matching overload for '_[_]'",
        ),
        (
            "self.on ? 'a' : 1",
            "found no matching overload for '_?_:_'",
        ),
        ("self.name.matches('(')", "invalid matches argument"),
        ("self.name ==", "Syntax error"),
        ("has(self)", "invalid argument to has() macro"),
        (
            "self.names.all(x.y, true)",
            "argument must be a simple name",
        ),
        ("Thing{a: 1} == self.inner", "undeclared type 'Thing'"),
    ] {
        let found = refusal(rule).unwrap_or_default();
        assert!(found.contains(reason), "{rule}: {found}");
    }
}
