//! A Buildbarn remote-execution farm from five custom resources.
