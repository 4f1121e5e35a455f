"""Plans and problems as text for people and programs; decides nothing, prints nothing."""
