//! The virtual machine sizes that clusters may use, as data.

/// A family of sizes: `Standard_<letter><number><rest>`.
struct Family {
    letter: &'static str,
    numbers: &'static [u32],
    rest: &'static str,
    /// The first minor version of OpenShift 4 that runs on them.
    since: u32,
}

const fn family(letter: &'static str, numbers: &'static [u32], rest: &'static str) -> Family {
    Family {
        letter,
        numbers,
        rest,
        since: 0,
    }
}

const fn since(since: u32, mut family: Family) -> Family {
    family.since = since;
    family
}

const V6: &[u32] = &[4, 8, 16, 32, 48, 64, 96];

const MASTER: &[Family] = &[
    family("D", &[8, 16, 32], "s_v3"),
    family("D", &[8, 16, 32], "s_v4"),
    family("D", &[8, 16, 32], "s_v5"),
    family("D", &[8, 16, 32], "as_v4"),
    family("D", &[8, 16, 32], "as_v5"),
    family("D", &[8, 16, 32], "ds_v5"),
    family("E", &[8, 16, 32], "s_v3"),
    family("E", &[8, 16, 20, 32, 48, 64], "s_v4"),
    family("E", &[8, 16, 20, 32, 48, 64, 96], "s_v5"),
    family("E", &[4, 8, 16, 20, 32, 48, 64, 96], "as_v4"),
    family("E", &[8, 16, 20, 32, 48, 64, 96], "as_v5"),
    family("E", &[64], "is_v3"),
    family("E", &[80], "is_v4"),
    family("E", &[80], "ids_v4"),
    family("E", &[104], "is_v5"),
    family("E", &[104], "ids_v5"),
    family("F", &[72], "s_v2"),
    family("M", &[128], "ms"),
    since(19, family("D", V6, "s_v6")),
    since(19, family("D", V6, "ds_v6")),
];

const WORKER: &[Family] = &[
    family("D", &[4, 8, 16, 32], "s_v3"),
    family("D", &[4, 8, 16, 32, 64], "s_v4"),
    family("D", &[4, 8, 16, 32, 64, 96], "s_v5"),
    family("D", &[4, 8, 16, 32, 64, 96], "as_v4"),
    family("D", &[4, 8, 16, 32, 64, 96], "as_v5"),
    family("D", &[4, 8, 16, 32, 48, 64, 96], "ds_v5"),
    family("E", &[4, 8, 16, 32], "s_v3"),
    family("E", &[2, 4, 8, 16, 20, 32, 48, 64], "s_v4"),
    family("E", &[2, 4, 8, 16, 20, 32, 48, 64, 96], "s_v5"),
    family("E", &[4, 8, 16, 20, 32, 48, 64, 96], "as_v4"),
    family("E", &[8, 16, 20, 32, 48, 64, 96], "as_v5"),
    family("E", &[64], "is_v3"),
    family("E", &[80], "is_v4"),
    family("E", &[80], "ids_v4"),
    family("E", &[96], "ds_v5"),
    family("E", &[104], "is_v5"),
    family("E", &[104], "ids_v5"),
    family("F", &[4, 8, 16, 32, 72], "s_v2"),
    family("M", &[128], "ms"),
    family("L", &[4, 8, 16, 32], "s"),
    family("L", &[8, 16, 32, 48, 64], "s_v2"),
    family("L", &[8, 16, 32, 48, 64], "s_v3"),
    since(19, family("L", &[4, 8, 16, 32, 48, 64, 80], "s_v4")),
    family("NC", &[4, 8, 16, 64], "as_T4_v3"),
    family("NC", &[6, 12, 24], "s_v3"),
    family("NC", &[24], "rs_v3"),
    since(19, family("D", V6, "s_v6")),
    since(19, family("D", V6, "ds_v6")),
    since(19, family("D", V6, "ls_v6")),
    since(19, family("D", V6, "lds_v6")),
];

/// Sizes of workers for development, where cost counts more than size.
const DEVELOPMENT: &[Family] = &[
    family("D", &[2], "s_v3"),
    family("D", &[2], "s_v4"),
    family("D", &[2], "s_v5"),
];

/// The original misspelt one size, and clients may have stored it.
const MISSPELT: (&str, &str) = ("Standard_D1l6ds_v6", "Standard_D16lds_v6");

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The control plane.
    Master,
    /// The work of users.
    Worker,
}

/// Why a size cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeError {
    /// It is not supported for this role.
    Unsupported,
    /// It needs a later version of OpenShift: 4 and this minor.
    NeedsVersion(u32),
}

/// Whether `size` can be used for `role` with OpenShift `version`. An unreadable version is refused
/// elsewhere. `small_workers` is for development.
pub fn check(size: &str, role: Role, version: &str, small_workers: bool) -> Result<(), SizeError> {
    let size = if size == MISSPELT.0 { MISSPELT.1 } else { size };
    let found = families(role, small_workers)
        .iter()
        .find(|family| family.sizes().any(|it| it == size));
    let family = found.ok_or(SizeError::Unsupported)?;
    match minor(version) {
        Some(minor) if minor < family.since => Err(SizeError::NeedsVersion(family.since)),
        _ => Ok(()),
    }
}

/// All sizes for a role.
pub fn all(role: Role) -> impl Iterator<Item = String> {
    families(role, false).iter().flat_map(Family::sizes)
}

fn families(role: Role, small_workers: bool) -> &'static [Family] {
    match role {
        Role::Master => MASTER,
        Role::Worker if small_workers => DEVELOPMENT,
        Role::Worker => WORKER,
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("4.")?.split('.').next()?.parse().ok()
}

impl Family {
    fn sizes(&self) -> impl Iterator<Item = String> {
        let Self { letter, rest, .. } = self;
        let sizes = self.numbers.iter();
        sizes.map(move |number| format!("Standard_{letter}{number}{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_depend_on_role_and_version() {
        let supported = |size, role, version| check(size, role, version, false);
        assert_eq!(supported("Standard_D8s_v3", Role::Master, "4.12.1"), Ok(()));
        assert_eq!(supported("Standard_D4s_v3", Role::Worker, "4.12.1"), Ok(()));
        let small = supported("Standard_D4s_v3", Role::Master, "4.12.1");
        assert_eq!(small, Err(SizeError::Unsupported));
        let new = supported("Standard_D8s_v6", Role::Master, "4.18.9");
        assert_eq!(new, Err(SizeError::NeedsVersion(19)));
        assert_eq!(supported("Standard_D8s_v6", Role::Master, "4.19.0"), Ok(()));
        for spelling in ["Standard_D1l6ds_v6", "Standard_D16lds_v6"] {
            assert_eq!(supported(spelling, Role::Worker, "4.20.0"), Ok(()));
        }
    }

    #[test]
    fn no_size_is_listed_twice() {
        for role in [Role::Master, Role::Worker] {
            let mut sizes: Vec<_> = all(role).collect();
            let total = sizes.len();
            sizes.sort();
            sizes.dedup();
            assert_eq!(sizes.len(), total);
        }
        assert_eq!(all(Role::Master).count(), 70);
    }
}
