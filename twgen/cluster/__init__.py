"""Reading facts about versions and Jobs from the objects of an API server."""
