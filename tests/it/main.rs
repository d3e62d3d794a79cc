mod formats;
mod layers;
