// The best nodes for each class of demand.
