"""From a model to what people look at: tables, plots, pages."""
