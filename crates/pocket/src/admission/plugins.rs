//! What the server itself adds to a write, or refuses of it, after its form was found right.
