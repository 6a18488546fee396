# Deploys a hub with the template of perdure deploy. Requirements: Terraform 1.5 or later, and in this directory
#
#   perdure template --out template.json
#   for f in orchestrator worker renewer api; do    # in the directory of the application
#     GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc,perdure_lambda -trimpath -buildvcs=false \
#       -ldflags="-s -w" -o <this directory>/dist/$f/bootstrap ./functions/$f
#   done
#
# terraform destroy keeps the table and the payloads, like a deletion of the stack.

terraform {
  required_providers {
    archive = {
      source  = "hashicorp/archive"
      version = "~> 2.4"
    }
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

variable "hub" {
  type    = string
  default = "default"
}

variable "bucket" {
  description = "Existing bucket for the code, in the region of the stack"
  type        = string
}

variable "parameters" {
  description = "Other parameters of the template, such as { WorkerMemory = \"512\" }"
  type        = map(string)
  default     = {}
}

locals {
  # The functions, with the parameters of their build IDs.
  builds = {
    orchestrator = "OrchestratorBuild"
    worker       = "WorkerBuild"
    renewer      = "RenewerBuild"
    api          = "APIBuild"
  }
  template = "${path.module}/template.json"
}

data "archive_file" "function" {
  for_each         = local.builds
  type             = "zip"
  source_file      = "${path.module}/dist/${each.key}/bootstrap"
  output_path      = "${path.module}/dist/${each.key}.zip"
  output_file_mode = "0755"
}

# The stack is updated before the code of an earlier build is deleted, because a rollback needs it.
resource "aws_s3_object" "function" {
  for_each = local.builds
  bucket   = var.bucket
  key      = "functions/${data.archive_file.function[each.key].output_sha256}.zip"
  source   = data.archive_file.function[each.key].output_path

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket = var.bucket
  key    = "templates/${filesha256(local.template)}.json"
  source = local.template

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "hub" {
  name         = "perdure-${var.hub}"
  template_url = "https://${var.bucket}.s3.${data.aws_region.current.name}.amazonaws.com/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]

  parameters = merge(var.parameters, {
    HubName    = var.hub
    CodeBucket = var.bucket
    CodePrefix = "functions/"
    }, {
    for function, parameter in local.builds :
    parameter => data.archive_file.function[function].output_sha256
  })

  depends_on = [aws_s3_object.function]
}

data "aws_region" "current" {}

output "api_url" {
  value = aws_cloudformation_stack.hub.outputs["ApiUrl"]
}
