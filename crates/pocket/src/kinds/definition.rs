//! CustomResourceDefinitions, as objects.

use super::{NameRule, Rules, Traits};
use crate::crd;

/// The rules of definitions; their meaning is in [`crate::crd`].
pub const RULES: Rules = Rules {
    default: crd::definition::default,
    validate: crd::definition::validate,
    validate_create: crd::definition::validate_name,
    validate_update: crd::definition::validate_update,
    traits: Traits {
        generation: true,
        unconditional_update: false,
        exclusive: true,
        name: NameRule::Subdomain,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};
