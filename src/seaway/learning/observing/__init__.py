"""What learned policies are shown of a fleet and a job."""
