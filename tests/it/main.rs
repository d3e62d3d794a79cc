//! Integration tests, one module a room.

mod evaluate;
mod layers;
