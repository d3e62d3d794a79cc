mod layers;
mod model_check;
